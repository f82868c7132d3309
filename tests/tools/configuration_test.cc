#include "configuration.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "command_line.h"
#include "support/temporary_directory.h"

namespace fgsync::tools {
namespace {

class Configuration : public ::testing::Test {
 protected:
  // The file's path.
  std::string write(const std::string& name, const std::string& text) {
    directory_.write(name, text);
    return directory_.path(name);
  }

  ~Configuration() override {
    ::unsetenv("FGSYNC_STREAMS");
    ::unsetenv("FGSYNC_ALLOW_PUBLIC");
    ::unsetenv("FGSYNC_NO_SUCH_OPTION");
  }

  std::string failure_of(const std::string& text) {
    const std::string path = write("config", text);
    Settings settings;
    try {
      read_configuration_file(path, settings);
    } catch (const CommandError& error) {
      EXPECT_EQ(error.exit_status, 1);
      EXPECT_EQ(error.message.rfind(path, 0), 0u) << error.message;
      return error.message;
    }
    return "";
  }

  testing::TemporaryDirectory directory_;
};

TEST_F(Configuration, LinesOfNameAndValueAreRead) {
  const std::string path = write("config",
                                 "# for the cluster\n"
                                 "\n"
                                 "streams = 8\n"
                                 "  rsh=ssh -p 22 -o 'A = b'  \r\n"
                                 "allow-public\n"
                                 "\tjson = false");
  Settings settings;
  read_configuration_file(path, settings);
  EXPECT_EQ(settings.size(), 4u);
  EXPECT_EQ(settings.at("streams").value, "8");
  EXPECT_EQ(settings.at("rsh").value, "ssh -p 22 -o 'A = b'");
  EXPECT_EQ(settings.at("allow-public").value, "true");
  EXPECT_EQ(settings.at("json").value, "false");
}

TEST_F(Configuration, AFifoIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(mkfifo(directory_.path("fifo").c_str(), 0600), 0);
  Settings settings;
  try {
    read_configuration_file(directory_.path("fifo"), settings);
    FAIL() << "it was read";
  } catch (const CommandError& error) {
    EXPECT_EQ(error.exit_status, 1);
    EXPECT_NE(error.message.find("fifo: opening the configuration: it is a FIFO"),
              std::string::npos)
        << error.message;
  }
}

TEST_F(Configuration, AMissingFileIsNone) {
  Settings settings;
  read_configuration_file(directory_.path("absent"), settings);
  read_configuration_file(directory_.path("absent/deeper"), settings);
  EXPECT_TRUE(settings.empty());
}

TEST_F(Configuration, WhatCannotBeUnderstoodNamesFileAndKey) {
  EXPECT_NE(failure_of("frobnicate = 1\n").find(":1: frobnicate: "), std::string::npos);
  EXPECT_NE(failure_of("\nstreams\n").find(":2: streams: "), std::string::npos);
  EXPECT_NE(failure_of("streams =\n").find("streams"), std::string::npos);
  EXPECT_NE(failure_of("serve = true\n").find("serve"), std::string::npos);
  EXPECT_NE(failure_of("help\n").find("help"), std::string::npos);
  EXPECT_NE(failure_of("[network]\n").find("[network]"), std::string::npos);
  EXPECT_NE(failure_of("bad\x1bkey = 1\n").find("bad\\x1bkey"), std::string::npos);
}

TEST_F(Configuration, LaterFilesWin) {
  Settings settings;
  read_configuration_file(write("first", "streams = 1\nbind = ens5\n"), settings);
  read_configuration_file(write("second", "streams = 2\n"), settings);
  EXPECT_EQ(settings.at("streams").value, "2");
  EXPECT_EQ(settings.at("bind").value, "ens5");
}

TEST_F(Configuration, VariablesWinOverFilesAndEmptyOnesAreNone) {
  Settings settings;
  read_configuration_file(write("config", "streams = 1\nallow-public = true\n"), settings);
  ASSERT_EQ(::setenv("FGSYNC_STREAMS", "3", 1), 0);
  ASSERT_EQ(::setenv("FGSYNC_ALLOW_PUBLIC", "", 1), 0);
  ASSERT_EQ(::setenv("FGSYNC_NO_SUCH_OPTION", "1", 1), 0);
  read_variables(settings);
  EXPECT_EQ(settings.at("streams").value, "3");
  EXPECT_EQ(settings.at("streams").place, Place::kVariable);
  EXPECT_EQ(settings.at("allow-public").value, "true");
}

TEST_F(Configuration, AListTakesThePlaceOfAnEarlierOnesWhole) {
  Settings settings;
  read_configuration_file(write("first", "last = a\nstreams = 2\nlast = b\n"), settings);
  EXPECT_EQ(settings.at("last").list, (std::vector<std::string>{"a", "b"}));
  read_configuration_file(write("second", "last = c\n"), settings);
  EXPECT_EQ(settings.at("last").list, std::vector<std::string>{"c"});
  EXPECT_EQ(settings.at("streams").value, "2");
  ASSERT_EQ(::setenv("FGSYNC_LAST", "d e", 1), 0);
  read_variables(settings);
  ::unsetenv("FGSYNC_LAST");
  EXPECT_EQ(settings.at("last").list, std::vector<std::string>{"d e"});
}

TEST_F(Configuration, LaterPlacesDecideBetweenTheAddressFamilies) {
  Settings settings;
  settings["ipv4"] = Setting{"true", Place::kFile, "config: ipv4"};
  settings["ipv6"] = Setting{"true", Place::kOption, "-6"};
  EXPECT_EQ(understand(settings, {"a", "b"}).transfer.family, AddressFamily::kIpv6);
}

TEST_F(Configuration, TheRulesOfALaterFileGoFirst) {
  Settings settings;
  read_configuration_file(write("host", "exclude = a\ninclude = b\nexclude = c\n"), settings);
  read_configuration_file(write("user", "\n\n\n\ninclude-from = d\n"), settings);
  EXPECT_EQ(settings.at("exclude").list, (std::vector<std::string>{"a", "c"}));
  const auto position = [&](const char* key, std::size_t i) {
    return settings.at(key).positions.at(i);
  };
  EXPECT_LT(position("include-from", 0), position("exclude", 0));
  EXPECT_LT(position("exclude", 0), position("include", 0));
  EXPECT_LT(position("include", 0), position("exclude", 1));
}

}  // namespace
}  // namespace fgsync::tools
