#include "selection/filter_rules.h"

#include <gtest/gtest.h>

namespace fgsync::selection {
namespace {

TEST(FilterRules, TheFirstThatMatchesDecides) {
  const FilterRules rules({{true, "/a/keep.tmp"}, {false, "*.tmp"}, {true, "*"}});
  EXPECT_FALSE(rules.leave_out("a/keep.tmp", false));
  EXPECT_TRUE(rules.leave_out("b/keep.tmp", false));
  EXPECT_FALSE(rules.leave_out("b/other", false));
}

TEST(FilterRules, WhatNoneIsAboutIsTaken) {
  EXPECT_FALSE(FilterRules({}).leave_out("a", false));
  EXPECT_TRUE(FilterRules({}).empty());
  EXPECT_FALSE(FilterRules({{false, "b"}}).leave_out("a", true));
}

TEST(FilterRules, SomeAreAboutDirectoriesAlone) {
  const FilterRules rules({{false, "cache/"}});
  EXPECT_TRUE(rules.leave_out("x/cache", true));
  EXPECT_FALSE(rules.leave_out("x/cache", false));
}

}  // namespace
}  // namespace fgsync::selection
