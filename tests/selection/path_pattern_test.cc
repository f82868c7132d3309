// Patterns against what rsync says of them.
#include "selection/path_pattern.h"

#include <gtest/gtest.h>

namespace fgsync::selection {
namespace {

constexpr const char* kPaths[] = {"latest",
                                  "DONE",
                                  "a",
                                  "ab",
                                  "a.b",
                                  "a-b",
                                  "a]b",
                                  "a[b",
                                  "a*b",
                                  "a?b",
                                  "a\\b",
                                  "_SUCCESS",
                                  "step_100/.metadata",
                                  "step_100/rank/0",
                                  "step_100/rank/1.pt",
                                  "x/y/z",
                                  "x/y.z",
                                  "x/latest",
                                  "x/y/latest",
                                  "deep/er/x/y",
                                  "A",
                                  "a1",
                                  "foo/bar/foo/bar",
                                  "-",
                                  "]",
                                  "!",
                                  "^x",
                                  "caf\303\251",
                                  "dir/***"};

struct Expectation {
  const char* pattern;
  std::vector<std::size_t> matched;  // of kPaths
};

// Made by rsync 3.5.0: what "--include=*/ --exclude=PATTERN" leaves out of a tree of these files.
const Expectation kExpectations[] = {
    {"latest", {0, 17, 18}},
    {"late*", {0, 17, 18}},
    {"la*t", {0, 17, 18}},
    {"*", {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
           15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28}},
    {"**", {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
            15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28}},
    {"?", {2, 13, 15, 19, 20, 23, 24, 25}},
    {"a?b", {4, 5, 6, 7, 8, 9, 10}},
    {"a[b", {}},
    {"a[[]b", {7}},
    {"a[]]b", {6}},
    {"a[!x]b", {4, 5, 6, 7, 8, 9, 10}},
    {"a[^-]b", {4, 6, 7, 8, 9, 10}},
    {"[a-c]", {2}},
    {"[!a-c]", {13, 15, 19, 20, 23, 24, 25}},
    {"[[:digit:]]", {13}},
    {"a[[:digit:]]", {21}},
    {"[[:alpha:]]*", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 18, 19, 20, 21, 22, 27}},
    {"[[:nope:]]*", {}},
    {"x/y", {19}},
    {"/x/y", {}},
    {"x/*", {16, 17, 19}},
    {"/x/*", {16, 17}},
    {"x/**", {15, 16, 17, 18, 19}},
    {"/x/**", {15, 16, 17, 18}},
    {"**/y", {19}},
    {"**/latest", {0, 17, 18}},
    {"*/latest", {17, 18}},
    {"/latest", {0}},
    {"/*/latest", {17}},
    {"y/z", {15}},
    {"x/*/z", {15}},
    {"x/**/z", {15}},
    {"step_*/.metadata", {12}},
    {"step_100/***", {12, 13, 14}},
    {"step_100/rank/***", {13, 14}},
    {"*.pt", {14}},
    {"rank/?", {13}},
    {"rank/[0-9]", {13}},
    {"rank/[0-9].pt", {14}},
    {"a\\*b", {8}},
    {"a\\*b*", {8}},
    {"a\\\\b", {}},
    {"a\\b", {10}},
    {"a*\\b", {3, 4, 5, 6, 7, 8, 9, 10}},
    {"a\\", {}},
    {"a*\\", {}},
    {"foo/bar", {22}},
    {"/foo/bar", {}},
    {"foo/*", {22}},
    {"foo/**", {22}},
    {"bar", {22}},
    {"x/", {}},
    {"x/y/", {}},
    {"a**b", {3, 4, 5, 6, 7, 8, 9, 10}},
    {"x**z", {15, 16}},
    {"/x**z", {15, 16}},
    {"[]-]", {23, 24}},
    {"[-]", {23}},
    {"[!]", {}},
    {"[", {}},
    {"a[", {}},
    {"[^x]x", {26}},
    {"*[!t]",
     {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28}},
    {"caf?", {}},
    {"caf?\?", {27}},
    {"***", {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
             15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28}},
    {"dir/\\*\\*\\*", {28}},
    {"[[:upper:]]", {20}},
    {"[a-", {}},
    {"[a-]", {2, 23}},
    {"a[a-z-]b", {5}},
    {"a[--/]b", {}},
    {"[\\]]", {24}},
    {"a[\\]]b", {6}},
    {"[[:alpha:]-z]", {2, 15, 19, 20, 23}},
};

TEST(PathPattern, MatchesWhatRsyncMatches) {
  for (const Expectation& expected : kExpectations) {
    const PathPattern pattern(expected.pattern);
    std::vector<std::size_t> matched;
    for (std::size_t i = 0; i < std::size(kPaths); ++i) {
      if (pattern.matches(kPaths[i], /*is_directory=*/false)) matched.push_back(i);
    }
    EXPECT_EQ(matched, expected.matched) << expected.pattern;
  }
}

// The same with "--exclude=PATTERN" and directories.
TEST(PathPattern, ASlashAtTheEndIsForDirectories) {
  EXPECT_TRUE(PathPattern("x/").matches("a/x", true));
  EXPECT_FALSE(PathPattern("x/").matches("a/x", false));
  EXPECT_TRUE(PathPattern("/a/x/").matches("a/x", true));
  EXPECT_TRUE(PathPattern("x/***").matches("a/x", true));
  EXPECT_TRUE(PathPattern("x/***").matches("x/y", true));
  EXPECT_FALSE(PathPattern("x/**").matches("a/x", true));
  EXPECT_TRUE(PathPattern("x").matches("a/x", true));
}

TEST(PathPattern, TakesNoLongerForAHostileOne) {
  std::string stars, text(4000, 'a');
  for (int i = 0; i < 1300; ++i) stars += "**a";
  EXPECT_FALSE(PathPattern(stars + "b").matches(text, false));
  EXPECT_TRUE(PathPattern(stars).matches(text, false));
}

TEST(PathPattern, KnowsWhetherTheNameDecides) {
  EXPECT_TRUE(PathPattern("*.pt").is_about_name());
  EXPECT_TRUE(PathPattern("x/").is_about_name());
  EXPECT_FALSE(PathPattern("/x").is_about_name());
  EXPECT_FALSE(PathPattern("a/x").is_about_name());
  EXPECT_FALSE(PathPattern("a**x").is_about_name());
}

}  // namespace
}  // namespace fgsync::selection
