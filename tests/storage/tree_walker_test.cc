#include "storage/tree_walker.h"

#include <climits>
#include <map>
#include <set>
#include <vector>

#include "storage/storage_fixture.h"

namespace fgsync::storage {
namespace {

class TreeWalkerTest : public testing::StorageFixture {
 protected:
  TreeWalkerTest() : tree(*files, open_root(), 4), walker(*files, tree, 1) {
    walker.add_directory(0);
  }

  // The rest of the walk, `count` at a time.
  void walk(std::size_t count = 100) {
    while (walker.next(count, entries, errors)) {
    }
  }
  // Paths and entries; each path once.
  std::map<std::string, WalkedEntry> by_path() const {
    std::map<std::string, WalkedEntry> paths;
    for (const WalkedEntry& entry : entries) {
      EXPECT_TRUE(paths.emplace(tree.path_of(entry.parent, entry.name), entry).second)
          << entry.name;
    }
    return paths;
  }
  std::set<std::string> paths() const {
    std::set<std::string> result;
    for (const auto& [path, entry] : by_path()) result.insert(path);
    return result;
  }

  DirectoryTree tree;
  TreeWalker walker;
  std::vector<WalkedEntry> entries;
  std::vector<WalkError> errors;
};

TEST_F(TreeWalkerTest, YieldsEveryEntryOnceWithItsStatus) {
  directory.make_directory("a");
  directory.make_directory("a/b");
  directory.make_directory("empty");
  directory.write("top", "1");
  directory.write("a/one", "12");
  directory.write("a/b/two", "123");
  directory.make_symlink("../a", "a/link");
  walk(1);
  EXPECT_TRUE(errors.empty());
  const auto found = by_path();
  EXPECT_EQ(paths(),
            (std::set<std::string>{"a", "a/b", "empty", "top", "a/one", "a/b/two", "a/link"}));
  for (const auto& [path, entry] : found) {
    const struct stat expected = directory.lstat(path);
    EXPECT_EQ(entry.status.inode, expected.st_ino) << path;
    EXPECT_EQ(entry.status.size, static_cast<std::uint64_t>(expected.st_size)) << path;
  }
  EXPECT_EQ(found.at("a/link").symlink_target, "../a");
  EXPECT_EQ(found.at("a/link").status.type, io::FileType::kSymlink);
}

TEST_F(TreeWalkerTest, DirectoryComesBeforeWhatIsInItAndIdsAreUnique) {
  for (const char* path : {"a", "a/b", "a/b/c", "d", "d/e"}) directory.make_directory(path);
  walk(2);
  std::set<std::uint64_t> known = {0};
  for (const WalkedEntry& entry : entries) {
    EXPECT_TRUE(known.contains(entry.parent)) << entry.name;
    EXPECT_TRUE(known.insert(entry.id).second) << entry.name;
  }
  EXPECT_EQ(entries.size(), 5u);
}

TEST_F(TreeWalkerTest, EmptyTreeEndsAtOnce) {
  walk();
  EXPECT_TRUE(entries.empty());
  EXPECT_TRUE(errors.empty());
  EXPECT_FALSE(walker.next(10, entries, errors));
}

TEST_F(TreeWalkerTest, NamesMayBeAnyBytes) {
  const std::set<std::string> names = {"new\nline", " space", "-leading-dash",      "\xff\xfe\x80",
                                       "*",         "...",    std::string(255, 'x')};
  for (const std::string& name : names) directory.write(name, "");
  walk();
  EXPECT_EQ(paths(), names);
}

TEST_F(TreeWalkerTest, WalksDeeperThanPathMax) {
  // 300 levels; 40 of them with long names.
  int at = ::dup(root.descriptor());
  for (int level = 0; level < 300; ++level) {
    const std::string name = level % 8 == 0 ? std::string(250, 'd') : "d";
    ASSERT_EQ(::mkdirat(at, name.c_str(), 0755), 0);
    const int below = ::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY);
    ::close(at);
    at = below;
    ::close(::openat(at, "file", O_WRONLY | O_CREAT, 0644));
  }
  ::close(at);
  walk();
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(entries.size(), 600u);
  std::size_t longest = 0;
  for (const WalkedEntry& entry : entries) {
    longest = std::max(longest, tree.path_of(entry.parent, entry.name).size());
  }
  EXPECT_GT(longest, std::size_t{PATH_MAX});
}

TEST_F(TreeWalkerTest, StateDirectoriesAreSkippedAtAnyDepth) {
  directory.make_directory(".fgsync");
  directory.write(".fgsync/secret", "");
  directory.make_directory("a");
  directory.make_directory("a/.fgsync");
  directory.write("a/.fgsync/secret", "");
  directory.write("a/.fgsync2", "");
  walk();
  EXPECT_EQ(paths(), (std::set<std::string>{"a", "a/.fgsync2"}));
  EXPECT_TRUE(errors.empty());
}

TEST_F(TreeWalkerTest, FileWithTheStateDirectorysNameIsLeftOutAndReported) {
  directory.make_directory("a");
  directory.write("a/.fgsync", "");
  walk();
  EXPECT_EQ(paths(), std::set<std::string>{"a"});
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].path, "a/.fgsync");
  EXPECT_EQ(errors[0].status.code(), ErrorCode::kRefused);
  EXPECT_FALSE(errors[0].directory);
}

TEST_F(TreeWalkerTest, FifoComesAsAnEntryAndDoesNotBlock) {
  directory.make_fifo("fifo");
  walk();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].status.type, io::FileType::kFifo);
}

TEST_F(TreeWalkerTest, FileThatVanishesAfterListingIsReportedNotFound) {
  for (const char* name : {"a", "b", "c"}) directory.write(name, "");
  // The directory counts for one: the first call lists one name, and the kernel has given all
  // three.
  ASSERT_TRUE(walker.next(2, entries, errors));
  ASSERT_EQ(entries.size(), 1u);
  std::set<std::string> vanished = {"a", "b", "c"};
  vanished.erase(entries[0].name);
  for (const std::string& name : vanished) ::unlink(directory.path(name).c_str());
  walk();
  EXPECT_EQ(entries.size(), 1u);
  ASSERT_EQ(errors.size(), 2u);
  for (const WalkError& error : errors) {
    EXPECT_EQ(error.status.code(), ErrorCode::kNotFound);
    EXPECT_FALSE(error.directory);
    EXPECT_EQ(vanished.erase(error.path), 1u);
  }
}

TEST_F(TreeWalkerTest, UnreadableDirectoryIsReportedAndTheWalkGoesOn) {
  directory.make_directory("closed");
  directory.write("closed/hidden", "");
  directory.make_directory("open");
  directory.write("open/file", "");
  ASSERT_EQ(::chmod(directory.path("closed").c_str(), 0), 0);
  {
    const testing::UnprivilegedScope unprivileged;
    walk();
  }
  EXPECT_EQ(paths(), (std::set<std::string>{"closed", "open", "open/file"}));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].path, "closed");
  EXPECT_EQ(errors[0].status.code(), ErrorCode::kPermissionDenied);
  EXPECT_TRUE(errors[0].directory);
}

TEST_F(TreeWalkerTest, SymlinkSwappedInForADirectoryIsNotFollowed) {
  directory.make_directory("elsewhere");
  testing::TemporaryDirectory outside;
  outside.write("secret", "");
  ASSERT_TRUE(walker.next(2, entries, errors));
  ASSERT_EQ(entries.size(), 1u);
  ASSERT_EQ(::rmdir(directory.path("elsewhere").c_str()), 0);
  directory.make_symlink(outside.path(), "elsewhere");
  walk();
  EXPECT_EQ(entries.size(), 1u);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].path, "elsewhere");
  EXPECT_TRUE(errors[0].directory);
}

TEST_F(TreeWalkerTest, LargeDirectoryStreamsThroughInBatches) {
  constexpr std::size_t kFiles = 2000;
  for (std::size_t number = 0; number < kFiles; ++number) {
    directory.write(std::to_string(number), "");
  }
  std::size_t before = 0;
  while (walker.next(64, entries, errors)) {
    EXPECT_LE(entries.size() - before, 64u);
    before = entries.size();
  }
  EXPECT_EQ(paths().size(), kFiles);
}

TEST_F(TreeWalkerTest, EmptyDirectoriesDoNotKeepACallFromReturning) {
  for (int number = 0; number < 100; ++number) directory.make_directory(std::to_string(number));
  ASSERT_TRUE(walker.next(101, entries, errors));
  ASSERT_EQ(entries.size(), 100u);
  int calls = 0;
  while (walker.next(10, entries, errors)) ++calls;
  EXPECT_EQ(calls, 10);
  EXPECT_EQ(entries.size(), 100u);
}

TEST_F(TreeWalkerTest, IdsTakenByHandAreNotGivenAgain) {
  directory.write("file", "");
  EXPECT_EQ(walker.take_id(), 1u);
  EXPECT_EQ(walker.take_id(), 2u);
  walk();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].id, 3u);
}

TEST_F(TreeWalkerTest, WhatTheRulesLeaveOutIsNeitherLookedAtNorEntered) {
  directory.make_directory("keep");
  directory.make_directory("keep/out");
  directory.make_directory("out");
  directory.write("keep/out/one", "1");
  directory.write("keep/two.tmp", "1");
  directory.write("keep/three", "1");
  directory.write("out/four", "1");
  directory.write("out.tmp", "1");
  const selection::FilterRules rules(
      {{true, "/run/keep/**.tmp"}, {false, "*.tmp"}, {false, "out/"}});
  TreeWalker narrow(*files, tree, 1, {.prefix = "run", .rules = &rules});
  narrow.add_directory(0);
  while (narrow.next(2, entries, errors)) {
  }
  EXPECT_EQ(paths(), (std::set<std::string>{"keep", "keep/two.tmp", "keep/three"}));
  EXPECT_TRUE(errors.empty());
}

class ListedWalkTest : public TreeWalkerTest {
 protected:
  ListedWalkTest() {
    for (const char* path : {"a", "a/b", "a/b/deep", "c"}) directory.make_directory(path);
    for (const char* path : {"a/one", "a/b/two", "a/b/deep/three", "c/four", "five"}) {
      directory.write(path, "1");
    }
  }
  std::set<std::string> walk_listed(std::vector<std::string> listed, bool whole = false) {
    const selection::ListedPaths paths_listed(std::move(listed));
    WalkScope scope;
    scope.listed = &paths_listed;
    scope.listed_directories_whole = whole;
    TreeWalker narrow(*files, tree, 1, scope);
    narrow.add_directory(0);
    while (narrow.next(1, entries, errors)) {
    }
    return paths();
  }
  using Paths = std::set<std::string>;
};

TEST_F(ListedWalkTest, NothingButThePathsAndTheirDirectoriesIsYielded) {
  EXPECT_EQ(walk_listed({"a/b/two", "five"}), (Paths{"a", "a/b", "a/b/two", "five"}));
  EXPECT_TRUE(errors.empty());
}

TEST_F(ListedWalkTest, ADirectoryStandsForItself) {
  EXPECT_EQ(walk_listed({"a/b"}), (Paths{"a", "a/b"}));
}

TEST_F(ListedWalkTest, ADirectoryWithASlashStandsForTheNamesInItToo) {
  EXPECT_EQ(walk_listed({"a/", "a/b/two"}), (Paths{"a", "a/b", "a/b/two", "a/one"}));
}

TEST_F(ListedWalkTest, DirectoriesAreWholeIfAsked) {
  EXPECT_EQ(walk_listed({"a/b", "c/four"}, true),
            (Paths{"a", "a/b", "a/b/two", "a/b/deep", "a/b/deep/three", "c", "c/four"}));
}

TEST_F(ListedWalkTest, WhatIsNotThereIsNamedPathByPath) {
  EXPECT_EQ(walk_listed({"a/", "a/none", "five/x", "gone/y", "gone/z"}),
            (Paths{"a", "a/b", "a/one"}));
  Paths named;
  for (const WalkError& error : errors) {
    EXPECT_TRUE(error.listed && error.directory) << error.path;
    named.insert(error.path);
  }
  EXPECT_EQ(named, (Paths{"a/none", "five/x", "gone/y", "gone/z"}));
}

TEST_F(TreeWalkerTest, DirectoriesOfAnotherDeviceAreNotEntered) {
  directory.make_directory("a");
  directory.write("a/one", "1");
  directory.write("two", "1");
  WalkScope scope;
  scope.device = directory.lstat(".").st_dev + 1;
  TreeWalker narrow(*files, tree, 1, scope);
  narrow.add_directory(0);
  while (narrow.next(2, entries, errors)) {
  }
  EXPECT_EQ(paths(), (std::set<std::string>{"a", "two"}));
}

}  // namespace
}  // namespace fgsync::storage
