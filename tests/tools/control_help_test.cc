#include "control_help.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <vector>

namespace fgsync::tools {
namespace {

std::string manual() {
  std::ifstream file(FGSYNCCTL_MANUAL);
  std::stringstream text;
  text << file.rdbuf();
  std::string manual = text.str();
  std::erase(manual, '\\');  // a hyphen that can be searched for is written "\-"
  return manual;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

TEST(ControlHelp, FitsEightyColumns) {
  for (const std::string& text : {control_help_text(), verify_help_text()}) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(ControlHelp, TheManualHasEachOptionAndStatus) {
  const std::string text = manual();
  const std::string help = verify_help_text();
  int found = 0;
  for (const std::string& word : words_of(help)) {
    if (!word.starts_with("--")) continue;
    const std::string option =
        word.substr(0, word.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"));
    EXPECT_NE(text.find(option), std::string::npos) << option;
    ++found;
  }
  EXPECT_GE(found, 6);
  int statuses = 0;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty() || words[0].find_first_not_of("0123456789") != std::string::npos) continue;
    EXPECT_NE(text.find(".B " + words[0] + "\n"), std::string::npos) << words[0];
    ++statuses;
  }
  EXPECT_GE(statuses, 3);
}

}  // namespace
}  // namespace fgsync::tools
