#include "help_text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "option_table.h"

namespace fgsync::tools {
namespace {

// Every option that the contract with users names.
constexpr const char* kContract[] = {"-n",
                                     "--dry-run",
                                     "--delete",
                                     "--max-delete",
                                     "--delete-excluded",
                                     "--exclude",
                                     "--include",
                                     "--exclude-from",
                                     "--include-from",
                                     "--files-from",
                                     "-0",
                                     "--from0",
                                     "--max-size",
                                     "--min-size",
                                     "-x",
                                     "-c",
                                     "--one-file-system",
                                     "--checksum",
                                     "--size-only",
                                     "-u",
                                     "--update",
                                     "--existing",
                                     "--ignore-existing",
                                     "-I",
                                     "--ignore-times",
                                     "--publish",
                                     "--last",
                                     "--durability",
                                     "--verify",
                                     "--streams",
                                     "--chunk-size",
                                     "--bwlimit",
                                     "--transport",
                                     "--io-engine",
                                     "--direct-io",
                                     "--cipher",
                                     "--bind",
                                     "--port",
                                     "--allow-public",
                                     "-e",
                                     "--rsh",
                                     "--remote-fgsync",
                                     "-4",
                                     "-6",
                                     "--timeout",
                                     "--retry-for",
                                     "--connect-timeout",
                                     "--no-resume",
                                     "-q",
                                     "-v",
                                     "-i",
                                     "--itemize-changes",
                                     "--progress",
                                     "--json",
                                     "--log-file",
                                     "--report",
                                     "--metrics-file",
                                     "--lock",
                                     "--max-duration",
                                     "--stats",
                                     "--no-owner",
                                     "--no-group",
                                     "--no-perms",
                                     "--no-times",
                                     "--no-hard-links",
                                     "--no-xattrs",
                                     "--no-acls",
                                     "--no-sparse",
                                     "--no-specials",
                                     "--numeric-ids",
                                     "--chown",
                                     "--chmod",
                                     "-L",
                                     "--copy-links",
                                     "--safe-links",
                                     "-a",
                                     "-r",
                                     "-l",
                                     "-p",
                                     "-t",
                                     "-g",
                                     "-o",
                                     "-D",
                                     "-H",
                                     "-A",
                                     "-X",
                                     "-S",
                                     "-W",
                                     "--partial",
                                     "--info",
                                     "-h",
                                     "-z",
                                     "--mkpath",
                                     "--help",
                                     "--version"};

// Whether `option` stands in `text` as a whole word.
bool mentions(const std::string& text, const std::string& option) {
  constexpr const char* kWordCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
  for (std::size_t at = text.find(option); at != std::string::npos;
       at = text.find(option, at + 1)) {
    const std::string around = std::string(1, at == 0 ? ' ' : text[at - 1]) +
                               (at + option.size() < text.size() ? text[at + option.size()] : ' ');
    if (around.find_first_of(kWordCharacters) == std::string::npos) return true;
  }
  return false;
}

TEST(Help, FitsEightyColumns) {
  std::istringstream lines(help_text());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(Help, NamesEveryOptionOfTheContract) {
  const std::string help = help_text();
  for (const char* option : kContract) EXPECT_TRUE(mentions(help, option)) << option;
  EXPECT_FALSE(mentions(help, "--serve"));
}

TEST(Help, MarksWhatIsNotOffered) {
  const std::string help = help_text();
  const std::size_t start = help.find("--max-delete");
  EXPECT_NE(help.find("(not in this", start), std::string::npos);
}

TEST(Help, ListsEveryExitStatus) {
  const std::string help = help_text();
  for (const char* status :
       {" 0 ", " 1 ", " 2 ", " 3 ", " 4 ", " 5 ", " 10 ", " 11 ", " 12 ", " 20 ", " 23 ", " 24 ",
        " 25 ", " 30 ", " 35 ", " 40 ", " 41 ", " 255 "}) {
    EXPECT_NE(help.find(status, help.find("Exit status:")), std::string::npos) << status;
  }
}

TEST(Manual, NamesEveryOption) {
  std::ostringstream text;
  text << std::ifstream(FGSYNC_MANUAL).rdbuf();
  std::string manual = text.str();
  ASSERT_FALSE(manual.empty());
  for (std::size_t at = manual.find("\\-"); at != std::string::npos; at = manual.find("\\-", at)) {
    manual.erase(at, 1);
  }
  for (const OptionRow& row : option_table()) {
    if (row.group.empty()) continue;
    EXPECT_TRUE(mentions(manual, row.spelling())) << row.spelling();
  }
}

}  // namespace
}  // namespace fgsync::tools
