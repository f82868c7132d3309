#include "receipt/tree_lookup.h"

#include "storage/storage_fixture.h"

namespace fgsync::receipt {
namespace {

using TreeLookupTest = testing::StorageFixture;

TEST_F(TreeLookupTest, FindsWhatStandsAtPathsInAnyOrder) {
  directory.make_directory("a");
  directory.make_directory("a/b");
  directory.write("top", "1");
  directory.write("a/one", "22");
  directory.write("a/b/two", "333");
  TreeLookup tree(*files, root);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(tree.stat("a/b/two")->size, 3u);
    EXPECT_EQ(tree.stat("a/one")->size, 2u);
    EXPECT_EQ(tree.stat("top")->size, 1u);
    EXPECT_EQ(tree.stat("a/b")->type, io::FileType::kDirectory);
  }
}

TEST_F(TreeLookupTest, WhatIsMissingOrBehindSomethingElseIsNotFound) {
  directory.make_directory("a");
  directory.write("a/file", "x");
  directory.write("elsewhere", "x");
  directory.make_symlink("a", "link");
  TreeLookup tree(*files, root);
  for (const char* path : {"a/missing", "missing/file", "a/file/below", "link/file"}) {
    const auto status = tree.stat(path);
    ASSERT_FALSE(status.ok()) << path;
    EXPECT_EQ(status.status().code(), ErrorCode::kNotFound) << path;
  }
  EXPECT_EQ(tree.stat("link")->type, io::FileType::kSymlink);
  EXPECT_TRUE(tree.stat("a/file").ok());
}

TEST_F(TreeLookupTest, ADirectoryThatCannotBeEnteredIsNotCalledMissing) {
  directory.make_directory("closed");
  ASSERT_EQ(::chmod(directory.path("closed").c_str(), 0), 0);
  const testing::UnprivilegedScope user;
  TreeLookup tree(*files, root);
  const auto status = tree.stat("closed/file");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.status().code(), ErrorCode::kPermissionDenied);
}

}  // namespace
}  // namespace fgsync::receipt
