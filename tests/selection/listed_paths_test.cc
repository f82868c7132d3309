#include "selection/listed_paths.h"

#include <gtest/gtest.h>

namespace fgsync::selection {
namespace {

using Names = std::vector<std::string>;

std::string parsed(std::string_view text) {
  const Result<std::string> path = parse_listed_path(text);
  return path.ok() ? *path : "refused";
}

// Names below a branch, those that are listed with a "!", those with their names with a "/".
Names children(const ListedPaths& paths, ListedPaths::Branch branch) {
  Names names;
  while (!branch.empty()) {
    const ListedPaths::Child child = paths.first_of(branch);
    names.push_back(child.name + (child.is_listed ? "!" : "") + (child.with_names ? "/" : ""));
    branch.begin = child.next;
  }
  return names;
}

TEST(ListedPath, IsReadWithoutWhatSaysNothing) {
  EXPECT_EQ(parsed("a/b"), "a/b");
  EXPECT_EQ(parsed("/a//./b"), "a/b");
  EXPECT_EQ(parsed("./a"), "a");
  EXPECT_EQ(parsed("a/b/../c"), "a/c");
  EXPECT_EQ(parsed("a/"), "a/");
  EXPECT_EQ(parsed("a/."), "a/");
  EXPECT_EQ(parsed("a/b/.."), "a/");
  EXPECT_EQ(parsed("."), "");
  EXPECT_EQ(parsed("/"), "");
  EXPECT_EQ(parsed("..a/...\n"), "..a/...\n");
}

TEST(ListedPath, LeadsNotOutOfTheSource) {
  for (const char* text : {"..", "../a", "a/../../b", "/..", "./.."}) {
    EXPECT_EQ(parsed(text), "refused") << text;
  }
  EXPECT_EQ(parsed(std::string_view("a\0b", 3)), "refused");
}

TEST(ListedPaths, AreATreeWhateverTheirOrder) {
  const ListedPaths paths({"b/x", "a", "a!", "a/x", "a/", "b/x", "c/d/e", "a!/y"});
  const ListedPaths::Child root = paths.root();
  EXPECT_FALSE(root.is_listed);
  EXPECT_EQ(children(paths, root.below), (Names{"a!/", "a!!", "b", "c"}));
  const auto a = paths.find(root.below, "a");
  ASSERT_TRUE(a);
  EXPECT_EQ(children(paths, a->below), (Names{"x!"}));
  const auto other = paths.find(root.below, "a!");
  ASSERT_TRUE(other);
  EXPECT_EQ(children(paths, other->below), (Names{"y!"}));
  const auto c = paths.find(root.below, "c");
  ASSERT_TRUE(c);
  EXPECT_FALSE(c->is_listed);
  EXPECT_EQ(paths.path(c->below.begin), "c/d/e");
  EXPECT_FALSE(paths.find(root.below, "d"));
  EXPECT_FALSE(paths.find(root.below, ""));
  EXPECT_FALSE(paths.find(a->below, "a"));
}

TEST(ListedPaths, MayNameTheSourceItself) {
  const ListedPaths paths({"a/b", ""});
  EXPECT_TRUE(paths.root().is_listed);
  EXPECT_TRUE(paths.root().with_names);
  EXPECT_EQ(children(paths, paths.root().below), (Names{"a"}));
  EXPECT_TRUE(ListedPaths({}).root().below.empty());
}

TEST(ListedPaths, WhatRulesLeaveOutWhateverItIsIsDropped) {
  ListedPaths paths({"a/x.tmp", "b/cache", "c/cache/", "d"});
  paths.leave_out(FilterRules({{false, "/top/a/*.tmp"}, {false, "cache/"}}), "top");
  EXPECT_EQ(children(paths, paths.root().below), (Names{"b", "d!"}));
}

}  // namespace
}  // namespace fgsync::selection
