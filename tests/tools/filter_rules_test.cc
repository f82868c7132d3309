#include "filter_rules.h"

#include <gtest/gtest.h>

#include "command_line.h"
#include "support/temporary_directory.h"

namespace fgsync::tools {
namespace {

using Words = std::vector<std::string>;
using Rules = std::vector<FilterRule>;

class FilterRulesTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    directory_.write(name, text);
    return directory_.path(name);
  }

  static Rules rules_of(Words words) {
    words.insert(words.end(), {"a", "b"});
    const Arguments arguments = parse_arguments("fgsync", words);
    return understand(arguments.settings, arguments.locations).transfer.selection.rules;
  }

  static std::string failure_of(const Words& words) {
    try {
      rules_of(words);
    } catch (const CommandError& error) {
      EXPECT_EQ(error.exit_status, 1) << error.message;
      EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
      return error.message;
    }
    return "";
  }

  testing::TemporaryDirectory directory_;
};

TEST_F(FilterRulesTest, AreAskedInTheOrderOfTheCommandLine) {
  const std::string file = write("rules", "three\n+ four\n");
  EXPECT_EQ(rules_of({"--exclude=one", "--include", "two", "--exclude-from=" + file, "-v",
                      "--include=five", "--exclude", "six"}),
            (Rules{{false, "one"},
                   {true, "two"},
                   {false, "three"},
                   {true, "four"},
                   {true, "five"},
                   {false, "six"}}));
}

TEST_F(FilterRulesTest, MaySayForThemselvesWhatTheyAre) {
  EXPECT_EQ(rules_of({"--exclude=+ a", "--include", "- b", "--exclude", "-c", "--exclude=+d"}),
            (Rules{{true, "a"}, {false, "b"}, {false, "-c"}, {false, "+d"}}));
}

TEST_F(FilterRulesTest, AnExclamationMarkForgetsThoseBefore) {
  EXPECT_EQ(rules_of({"--exclude=a", "--include=!", "--exclude=!b", "--include=c"}),
            (Rules{{false, "!b"}, {true, "c"}}));
}

TEST_F(FilterRulesTest, PatternsArriveAsTheyAre) {
  for (const char* pattern : {"[ab]", "[a,b]", "a,b", "\"q\"", "'q'", "a\\*b", " x ", "{}", "#x"}) {
    EXPECT_EQ(rules_of({"--exclude", pattern}), (Rules{{false, pattern}})) << pattern;
    EXPECT_EQ(rules_of({std::string("--include=") + pattern}), (Rules{{true, pattern}}));
  }
}

TEST_F(FilterRulesTest, FilesHaveCommentsBlankLinesAndAnyLineEnd) {
  const std::string file = write("rules", "# x\n\n;y\n  lead\ntrail \r\n- a\rlast");
  EXPECT_EQ(rules_of({"--include-from", file}),
            (Rules{{true, "  lead"}, {true, "trail "}, {false, "a"}, {true, "last"}}));
}

TEST_F(FilterRulesTest, FilesMayEndEachRuleWithNul) {
  const std::string file = write("rules", std::string("a\nb\0\0- c\0#d\0", 11));
  EXPECT_EQ(rules_of({"-0", "--include-from=" + file}), (Rules{{true, "a\nb"}, {false, "c"}}));
}

TEST_F(FilterRulesTest, ThoseOfTheCommandLineGoBeforeThoseOfLesserPlaces) {
  Settings settings;
  settings["include"] = {"x", Place::kFile, "", {"x", "y"}, {1, 3}};
  settings["exclude"] = {"z", Place::kVariable, "", {"z"}, {0}};
  settings["exclude-from"] = {"-", Place::kOption, "", {write("rules", "c\n")}, {2}};
  EXPECT_EQ(read_filter_rules(settings, false),
            (Rules{{false, "c"}, {false, "z"}, {true, "x"}, {true, "y"}}));
  settings["exclude"].list = {"!"};
  EXPECT_EQ(read_filter_rules(settings, false), (Rules{{false, "c"}}));
}

TEST_F(FilterRulesTest, BadOnesAreUsageErrorsThatNameTheirPlace) {
  const std::string file = write("rules", "fine\n\n- \n");
  EXPECT_EQ(failure_of({"--exclude-from", file}), file + ":3: the pattern is missing");
  EXPECT_EQ(failure_of({"--exclude=+ "}), "--exclude=+ : the pattern is missing");
  EXPECT_EQ(failure_of({"--exclude="}), "--exclude=: the value is missing");
  EXPECT_NE(failure_of({"--exclude-from=" + write("nul", std::string("a\nb\0c\n", 6))})
                .find("nul:2: a NUL in the line"),
            std::string::npos);
  EXPECT_NE(failure_of({"--exclude-from", directory_.path("none")})
                .find("none: opening: No such file or directory"),
            std::string::npos);
  EXPECT_NE(failure_of({"--exclude-from", directory_.path(".")}).find("Is a directory"),
            std::string::npos);
  EXPECT_NE(failure_of({"--exclude-from=" + write("long", std::string(5000, 'x'))})
                .find("long:1: a pattern has at most 4096 bytes"),
            std::string::npos);
  std::string many;
  for (int i = 0; i < 17'000; ++i) many += "x\n";
  EXPECT_NE(failure_of({"--exclude-from=" + write("many", many)}), "");
  EXPECT_NE(failure_of({"--exclude-from=/dev/zero"}), "");
}

}  // namespace
}  // namespace fgsync::tools
