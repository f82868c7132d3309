#include "transfer/source_mapping.h"

#include <sys/stat.h>

#include "transfer/mapping_fixture.h"

namespace fgsync::transfer {
namespace {

class SourceMapping : public testing::MappingFixture {
 protected:
  SourceMapping() {
    directory.make_directory("tree");
    directory.make_directory("tree/below");
    directory.write("tree/file", "contents");
    directory.make_symlink("tree", "alias");
    directory.make_symlink("tree/file", "file_alias");
  }
  wire::SourceDescription describe(const std::string& path) {
    auto sources = resolve({path});
    EXPECT_TRUE(sources.ok()) << sources.status().message();
    return sources.ok() ? sources->front().description : wire::SourceDescription();
  }
};

TEST_F(SourceMapping, ADirectoryTravelsUnderItsOwnName) {
  const wire::SourceDescription source = describe(directory.path("tree"));
  EXPECT_EQ(source.display, top + "/tree");
  EXPECT_EQ(source.base_name, "tree");
  EXPECT_TRUE(source.is_directory);
  EXPECT_FALSE(source.contents_only);
}

TEST_F(SourceMapping, ATrailingSlashOrADotMeansTheContents) {
  EXPECT_TRUE(describe(directory.path("tree/")).contents_only);
  EXPECT_TRUE(describe(directory.path("tree///")).contents_only);
  EXPECT_EQ(describe(directory.path("tree///")).base_name, "tree");
  const wire::SourceDescription dot = describe(directory.path("tree/."));
  EXPECT_TRUE(dot.contents_only);
  EXPECT_EQ(dot.base_name, "tree");
  const wire::SourceDescription parent = describe(directory.path("tree/below/.."));
  EXPECT_TRUE(parent.contents_only);
  EXPECT_EQ(parent.display, top + "/tree");
  EXPECT_EQ(parent.base_name, "tree");
}

TEST_F(SourceMapping, ASymlinkStandsForWhatItLeadsToUnderTheNameThatWasTyped) {
  const wire::SourceDescription tree = describe(directory.path("alias"));
  EXPECT_TRUE(tree.is_directory);
  EXPECT_EQ(tree.display, top + "/tree");
  EXPECT_EQ(tree.base_name, "alias");
  const wire::SourceDescription file = describe(directory.path("file_alias"));
  EXPECT_FALSE(file.is_directory);
  EXPECT_EQ(file.display, top + "/tree/file");
  EXPECT_EQ(file.base_name, "file_alias");
}

TEST_F(SourceMapping, TheRootDirectoryHasNoName) {
  const wire::SourceDescription root = describe("/");
  EXPECT_EQ(root.base_name, "");
  EXPECT_EQ(root.display, "/");
  EXPECT_EQ(root.ancestry.size(), 1u);
}

TEST_F(SourceMapping, TheAncestryOfADirectoryIsEveryDirectoryUpToTheRoot) {
  const wire::SourceDescription source = describe(directory.path("tree"));
  std::string at = top + "/tree";
  std::size_t depth = 0;
  while (true) {
    struct stat status {};
    ASSERT_EQ(::stat(at.c_str(), &status), 0);
    ASSERT_LT(depth, source.ancestry.size());
    EXPECT_EQ(source.ancestry[depth].inode, status.st_ino) << at;
    EXPECT_EQ(source.ancestry[depth].boot, environment->host_identity());
    ++depth;
    if (at == "/") break;
    at = parent_of(at);
  }
  EXPECT_EQ(source.ancestry.size(), depth);
}

TEST_F(SourceMapping, AFileIsKnownByItsDirectory) {
  const wire::SourceDescription source = describe(directory.path("tree/file"));
  ASSERT_FALSE(source.ancestry.empty());
  EXPECT_EQ(source.ancestry.front().inode, directory.lstat("tree").st_ino);
}

TEST_F(SourceMapping, WhatCannotBeASourceIsUnusable) {
  directory.make_fifo("fifo");
  directory.make_directory(".fgsync");
  directory.make_symlink("nowhere", "dangling");
  for (const char* path : {"missing", "missing/", "fifo", "tree/file/", "dangling", ".fgsync"}) {
    auto sources = resolve({directory.path("tree"), directory.path(path)});
    EXPECT_EQ(sources.status().code(), ErrorCode::kUnusable) << path;
    EXPECT_NE(sources.status().message().find(directory.path(path)), std::string::npos);
  }
  EXPECT_EQ(resolve({""}).status().code(), ErrorCode::kUnusable);
}

TEST(PathPieces, AreWhatPosixCallsThem) {
  EXPECT_EQ(parent_of("/a/b"), "/a");
  EXPECT_EQ(parent_of("/a"), "/");
  EXPECT_EQ(parent_of("/"), "/");
  EXPECT_EQ(last_component("/a/b"), "b");
  EXPECT_EQ(last_component("/"), "");
  EXPECT_EQ(last_component("b"), "b");
}

}  // namespace
}  // namespace fgsync::transfer
