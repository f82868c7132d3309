#include "storage/directory_tree.h"

#include <cerrno>
#include <climits>
#include <thread>
#include <vector>

#include "storage/storage_fixture.h"

namespace fgsync::storage {
namespace {

class DirectoryTreeTest : public testing::StorageFixture {
 protected:
  // A chain of `depth` directories below the root; the ids are 1..depth.
  void make_chain(DirectoryTree& tree, std::size_t depth, const std::string& name) {
    int at = ::dup(root.descriptor());
    for (std::uint64_t id = 1; id <= depth; ++id) {
      ASSERT_EQ(::mkdirat(at, name.c_str(), 0755), 0);
      const int below = ::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY);
      ::close(at);
      at = below;
      ASSERT_TRUE(tree.add(id, id - 1, name));
    }
    struct stat status;
    ASSERT_EQ(::fstat(at, &status), 0);
    ::close(at);
    deepest_inode = status.st_ino;
  }
  static ino_t inode_of(const DirectoryReference& reference) {
    struct stat status {};
    EXPECT_EQ(::fstat(reference->descriptor(), &status), 0);
    return status.st_ino;
  }
  ino_t deepest_inode = 0;
};

TEST_F(DirectoryTreeTest, Opens300LevelsDeep) {
  DirectoryTree tree(*files, open_root(), 8);
  make_chain(tree, 300, "level");
  auto deepest = tree.open(300);
  ASSERT_TRUE(deepest.ok()) << deepest.status().message();
  EXPECT_EQ(inode_of(*deepest), deepest_inode);
}

TEST_F(DirectoryTreeTest, OpensBeyondPathMax) {
  DirectoryTree tree(*files, open_root(), 1);
  make_chain(tree, 30, std::string(250, 'd'));
  EXPECT_GT(tree.path_of(30).size(), std::size_t{PATH_MAX});
  auto deepest = tree.open(30);
  ASSERT_TRUE(deepest.ok()) << deepest.status().message();
  EXPECT_EQ(inode_of(*deepest), deepest_inode);
}

TEST_F(DirectoryTreeTest, ThousandDirectoriesHoldNoMoreDescriptorsThanAllowed) {
  constexpr std::size_t kOpenMax = 16;
  DirectoryTree tree(*files, open_root(), kOpenMax);
  for (std::uint64_t id = 1; id <= 1000; ++id) {
    directory.make_directory(std::to_string(id));
    ASSERT_TRUE(tree.add(id, 0, std::to_string(id)));
  }
  const std::size_t before = testing::open_descriptors();
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t id = 1; id <= 1000; ++id) {
      auto opened = tree.open(id);
      ASSERT_TRUE(opened.ok());
      EXPECT_EQ(inode_of(*opened), directory.lstat(std::to_string(id)).st_ino);
      EXPECT_LE(testing::open_descriptors(), before + kOpenMax);
    }
  }
  EXPECT_EQ(testing::open_descriptors(), before + kOpenMax);
}

TEST_F(DirectoryTreeTest, ReferenceOutlivesItsEviction) {
  directory.make_directory("a");
  directory.make_directory("b");
  DirectoryTree tree(*files, open_root(), 1);
  ASSERT_TRUE(tree.add(1, 0, "a"));
  ASSERT_TRUE(tree.add(2, 0, "b"));
  auto first = tree.open(1);
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(tree.open(2).ok());
  EXPECT_EQ(inode_of(*first), directory.lstat("a").st_ino);
}

TEST_F(DirectoryTreeTest, HeldDirectoryIsNotOpenedAgain) {
  directory.make_directory("a");
  DirectoryTree tree(*files, open_root(), 2);
  ASSERT_TRUE(tree.add(1, 0, "a"));
  auto first = tree.open(1);
  auto second = tree.open(1);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->get(), second->get());
}

TEST_F(DirectoryTreeTest, SymlinkSwappedInForADirectoryIsNotFollowed) {
  directory.make_directory("outside");
  directory.make_directory("outside/inner");
  directory.make_directory("tree");
  directory.make_directory("tree/inner");
  DirectoryTree tree(*files, open_root(), 1);
  ASSERT_TRUE(tree.add(1, 0, "tree"));
  ASSERT_TRUE(tree.add(2, 1, "inner"));
  ASSERT_EQ(::rename(directory.path("tree").c_str(), directory.path("away").c_str()), 0);
  directory.make_symlink("outside", "tree");
  auto itself = tree.open(1);
  ASSERT_FALSE(itself.ok());
  EXPECT_EQ(itself.status().system_errno(), ENOTDIR);
  auto below = tree.open(2);
  ASSERT_FALSE(below.ok());
  EXPECT_EQ(below.status().system_errno(), ENOTDIR);
}

TEST_F(DirectoryTreeTest, RefusesUnknownParentsTakenIdsAndNamesThatLeadElsewhere) {
  DirectoryTree tree(*files, open_root(), 1);
  EXPECT_TRUE(tree.contains(0));
  EXPECT_FALSE(tree.add(0, 0, "root"));
  EXPECT_FALSE(tree.add(1, 7, "orphan"));
  EXPECT_FALSE(tree.add(1, 1, "its own parent"));
  for (const std::string& name : {std::string(".."), std::string("."), std::string(),
                                  std::string("a/b"), std::string("/"), std::string("a\0b", 3)}) {
    EXPECT_FALSE(tree.add(1, 0, name)) << name;
  }
  EXPECT_FALSE(tree.contains(1));
  EXPECT_TRUE(tree.add(1, 0, "a"));
  EXPECT_FALSE(tree.add(1, 0, "b"));
  EXPECT_TRUE(tree.contains(1));
  EXPECT_EQ(tree.path_of(1), "a");
  EXPECT_EQ(tree.open(9).status().code(), ErrorCode::kNotFound);
}

TEST_F(DirectoryTreeTest, PathsAreRelativeToTheRoot) {
  DirectoryTree tree(*files, open_root(), 1);
  ASSERT_TRUE(tree.add(1, 0, "a"));
  ASSERT_TRUE(tree.add(2, 1, "b c"));
  EXPECT_EQ(tree.path_of(0), "");
  EXPECT_EQ(tree.path_of(0, "file"), "file");
  EXPECT_EQ(tree.path_of(2), "a/b c");
  EXPECT_EQ(tree.parent_of(2), 1u);
  EXPECT_EQ(tree.parent_of(1), 0u);
  EXPECT_EQ(tree.parent_of(0), 0u);
  EXPECT_EQ(tree.path_of(2, "file"), "a/b c/file");
}

TEST_F(DirectoryTreeTest, ThreadsOpenTheDirectoriesTheyAskFor) {
  constexpr std::uint64_t kDirectories = 100;
  DirectoryTree tree(*files, open_root(), 4);
  std::vector<ino_t> inodes(kDirectories + 1);
  for (std::uint64_t id = 1; id <= kDirectories; ++id) {
    // Two levels, so that threads meet on the way as well.
    const std::uint64_t parent = id <= 10 ? 0 : id % 10 + 1;
    ASSERT_TRUE(tree.add(id, parent, std::to_string(id)));
    directory.make_directory(tree.path_of(id));
    inodes[id] = directory.lstat(tree.path_of(id)).st_ino;
  }
  std::vector<std::thread> threads;
  std::vector<std::size_t> right(4, 0);
  for (std::size_t thread = 0; thread < right.size(); ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t step = 0; step < 500; ++step) {
        const std::uint64_t id = (step * 37 + thread * 11) % kDirectories + 1;
        auto opened = tree.open(id);
        if (opened.ok() && inode_of(*opened) == inodes[id]) ++right[thread];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<std::size_t>(4, 500));
}

}  // namespace
}  // namespace fgsync::storage
