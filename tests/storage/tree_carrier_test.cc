// Carrying a tree over, and removing one: on real files.
#include "storage/tree_carrier.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "storage/storage_fixture.h"
#include "support/faulty_file_system.h"

namespace fgsync::storage {
namespace {

using testing::FaultyFileSystem;
using testing::FileOperation;

class TreeCarrierTest : public testing::StorageFixture {
 protected:
  TreeCarrierTest() : faulty(io::make_posix_file_system()) {
    directory.make_directory("old");
    directory.make_directory("new");
    directory.make_directory("old/a");
    directory.write("old/a/file", "contents");
    directory.write("old/top", "on top");
    directory.make_directory("old/.fgsync");
    directory.write("old/.fgsync/receipt", "the old one's");
    EXPECT_EQ(::symlink("a/file", directory.path("old/link").c_str()), 0);
    EXPECT_EQ(::chmod(directory.path("old/a").c_str(), 0750), 0);
  }
  TreeCarrier carrier() {
    return TreeCarrier(faulty, open("old"), open("new"), {root, "aside"}, [] { return Status(); });
  }
  io::FileHandle open(const std::string& below) {
    auto handle = faulty.open_path(directory.path(below));
    EXPECT_TRUE(handle.ok());
    return std::move(*handle);
  }
  bool is_linked(const std::string& name) {
    return directory.lstat("old/" + name).st_ino == directory.lstat("new/" + name).st_ino;
  }

  FaultyFileSystem faulty;
};

TEST_F(TreeCarrierTest, FilesAreLinkedAndTheRestIsMadeAnew) {
  EXPECT_TRUE(carrier().carry().ok());
  EXPECT_TRUE(is_linked("a/file"));
  EXPECT_TRUE(is_linked("top"));
  EXPECT_FALSE(is_linked("link"));
  EXPECT_EQ(directory.read("new/link"), "contents");
  for (const char* name : {"a", "link", "."}) {
    const struct stat then = directory.lstat(std::string("old/") + name);
    const struct stat now = directory.lstat(std::string("new/") + name);
    EXPECT_EQ(then.st_mode, now.st_mode) << name;
    EXPECT_EQ(then.st_mtim.tv_nsec, now.st_mtim.tv_nsec) << name;
  }
  EXPECT_FALSE(directory.exists("new/.fgsync"));
}

TEST_F(TreeCarrierTest, WhereLinksAreRefusedFilesAreCopiedAside) {
  for (const int refusal : {EMLINK, EPERM, EOPNOTSUPP}) {
    ASSERT_TRUE(remove_tree(*files, root, "new", [] { return Status(); }).ok());
    directory.make_directory("new");
    faulty.fail(FileOperation::kLink, 1, refusal, /*lasting=*/true);
    EXPECT_TRUE(carrier().carry().ok());
    EXPECT_FALSE(is_linked("a/file"));
    EXPECT_EQ(directory.read("new/a/file"), "contents");
    EXPECT_EQ(directory.lstat("new/top").st_mtim.tv_nsec,
              directory.lstat("old/top").st_mtim.tv_nsec);
    EXPECT_FALSE(directory.exists("aside"));
  }
}

TEST_F(TreeCarrierTest, WhatIsThereAlreadyStays) {
  directory.write("new/top", "newer");
  EXPECT_TRUE(carrier().carry().ok());
  EXPECT_EQ(directory.read("new/top"), "newer");
  EXPECT_TRUE(carrier().carry().ok());
}

TEST_F(TreeCarrierTest, AnErrorNamesWhatItIsAbout) {
  faulty.fail(FileOperation::kLink, 1, EIO, /*lasting=*/true);
  faulty.only_about("file");
  const Status carried = carrier().carry();
  EXPECT_EQ(carried.code(), ErrorCode::kIoError);
  EXPECT_NE(carried.message().find("a/file"), std::string::npos) << carried.message();
}

TEST_F(TreeCarrierTest, WhatIsNotWantedIsRestored) {
  ASSERT_TRUE(carrier().carry().ok());
  ::unlink(directory.path("new/top").c_str());
  directory.write("new/top", "an earlier run's, of another size");
  directory.make_directory("new/gone");
  directory.write("new/gone/file", "of a source that has lost it");
  directory.make_directory("new/a/wanted");
  directory.write("new/a/wanted/file", "wanted");
  directory.write("new/a/wanted/other", "not wanted");
  EXPECT_TRUE(carrier()
                  .restore([](const std::string& path) {
                    return path == "a/wanted" || path == "a/wanted/file";
                  })
                  .ok());
  EXPECT_TRUE(is_linked("top"));
  EXPECT_FALSE(directory.exists("new/gone"));
  EXPECT_EQ(directory.read("new/a/wanted/file"), "wanted");
  EXPECT_FALSE(directory.exists("new/a/wanted/other"));
  EXPECT_EQ(directory.lstat("new/a").st_mode, directory.lstat("old/a").st_mode);
}

TEST_F(TreeCarrierTest, ATreeIsRemovedWhateverItsModes) {
  EXPECT_EQ(::chmod(directory.path("old/a").c_str(), 0), 0);
  {
    EXPECT_EQ(::chown(directory.path().c_str(), ::geteuid(), ::getegid()), 0);
    EXPECT_TRUE(remove_tree(*files, root, "old", [] { return Status(); }).ok());
  }
  EXPECT_FALSE(directory.exists("old"));
  EXPECT_TRUE(directory.exists("new"));
  EXPECT_TRUE(remove_tree(*files, root, "old", [] { return Status(); }).ok());
}

TEST_F(TreeCarrierTest, AStepThatFailsEndsTheWork) {
  Status cancelled(ErrorCode::kCancelled, "enough");
  EXPECT_EQ(remove_tree(*files, root, "old", [&] { return cancelled; }).code(),
            ErrorCode::kCancelled);
  EXPECT_TRUE(directory.exists("old/a/file"));
}

TEST_F(TreeCarrierTest, ASymlinkInsteadOfATreeGoesAndWhatItLeadsToStays) {
  EXPECT_EQ(::symlink("old", directory.path("leads").c_str()), 0);
  EXPECT_TRUE(remove_tree(*files, root, "leads", [] { return Status(); }).ok());
  EXPECT_FALSE(directory.exists("leads"));
  EXPECT_TRUE(directory.exists("old/a/file"));
}

}  // namespace
}  // namespace fgsync::storage
