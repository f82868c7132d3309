#include "storage/metadata.h"

#include "storage/storage_fixture.h"
#include "support/faulty_file_system.h"

namespace fgsync::storage {
namespace {

class MetadataTest : public testing::StorageFixture {
 protected:
  MetadataTest() { directory.write("file", "contents"); }
  io::FileHandle open() { return open_file("file", io::OpenMode::kRead); }
  Metadata own(std::uint32_t mode) { return {mode, ::geteuid(), ::getegid(), {77, 5}}; }
  Result<bool> update(const std::string& name, const Metadata& wanted, bool with_mtime) {
    auto present = files->stat_at(root, name);
    EXPECT_TRUE(present.ok());
    return update_metadata_at(*files, root, name, *present, wanted, with_mtime);
  }
};

TEST_F(MetadataTest, SetuidSurvivesTheChangeOfOwner) {
  if (!files->may_set_owner()) GTEST_SKIP() << "only root gives files away";
  // The mode is right already: it is chown(2) that takes it away.
  ASSERT_EQ(::chmod(directory.path("file").c_str(), 06755), 0);
  ASSERT_TRUE(apply_metadata(*files, open(), {06755, 1234, 4321, {-1, 999'999'999}}).ok());
  const struct stat status = directory.lstat("file");
  EXPECT_EQ(status.st_mode & 07777u, 06755u);
  EXPECT_EQ(status.st_uid, 1234u);
  EXPECT_EQ(status.st_gid, 4321u);
  EXPECT_EQ(status.st_mtim.tv_sec, -1);
  EXPECT_EQ(status.st_mtim.tv_nsec, 999'999'999);
}

TEST_F(MetadataTest, OthersThanRootKeepTheirOwnerWithoutError) {
  const testing::UnprivilegedScope unprivileged;
  if (::getuid() == 0) {
    ASSERT_EQ(::seteuid(0), 0);
    ASSERT_EQ(
        ::chown(directory.path("file").c_str(), testing::UnprivilegedScope::kNobody, ::getegid()),
        0);
    ASSERT_EQ(::seteuid(testing::UnprivilegedScope::kNobody), 0);
  }
  const uid_t owner = directory.lstat("file").st_uid;
  EXPECT_FALSE(files->may_set_owner());
  ASSERT_TRUE(apply_metadata(*files, open(), {0600, 1234, 4321, {77, 5}}).ok());
  EXPECT_EQ(directory.lstat("file").st_uid, owner);
  EXPECT_EQ(directory.lstat("file").st_mode & 07777u, 0600u);
  EXPECT_EQ(directory.lstat("file").st_mtim.tv_sec, 77);
}

// Root that is refused nevertheless: in a user namespace, or on a server that squashes it.
class OwnerRefused : public MetadataTest, public ::testing::WithParamInterface<int> {
 protected:
  OwnerRefused() {
    refusing.claim_to_set_owners();
    refusing.fail(testing::FileOperation::kSetOwner, 1, GetParam(), /*lasting=*/true);
    directory.make_symlink("file", "link");
  }
  Metadata of_another(std::uint32_t mode) {
    return {mode, ::geteuid() + 1234, ::getegid() + 1234, {77, 5}};
  }

  testing::FaultyFileSystem refusing{io::make_posix_file_system()};
};

INSTANTIATE_TEST_SUITE_P(Errors, OwnerRefused, ::testing::Values(EPERM, EINVAL));

TEST_P(OwnerRefused, IsNoFailureAndIsRemembered) {
  EXPECT_FALSE(refusing.has_refused_owners());
  ASSERT_TRUE(apply_metadata(refusing, open(), of_another(0640)).ok());
  EXPECT_TRUE(refusing.has_refused_owners());
  EXPECT_EQ(directory.lstat("file").st_mode & 07777u, 0640u);
  EXPECT_EQ(directory.lstat("file").st_mtim.tv_sec, 77);
  EXPECT_EQ(directory.lstat("file").st_uid, ::geteuid());
}

TEST_P(OwnerRefused, OfASymlinkLeavesItItsTime) {
  ASSERT_TRUE(apply_symlink_metadata(refusing, root, "link", of_another(0777)).ok());
  EXPECT_TRUE(refusing.has_refused_owners());
  EXPECT_EQ(directory.lstat("link").st_mtim.tv_sec, 77);
}

TEST_P(OwnerRefused, LeavesNothingToRunAsWhoeverOwnsItInstead) {
  ASSERT_TRUE(apply_metadata(refusing, open(), of_another(06755)).ok());
  EXPECT_EQ(directory.lstat("file").st_mode & 07777u, 0755u);
}

TEST_P(OwnerRefused, IsNoChangeTheNextTime) {
  ASSERT_TRUE(apply_metadata(refusing, open(), of_another(06755)).ok());
  auto present = refusing.stat_at(root, "file");
  ASSERT_TRUE(present.ok());
  auto updated = update_metadata_at(refusing, root, "file", *present, of_another(06755), true);
  ASSERT_TRUE(updated.ok()) << updated.status().message();
  EXPECT_FALSE(*updated);
}

TEST_F(MetadataTest, AnOwnerThatCannotBeSetForAnotherReasonIsAFailure) {
  testing::FaultyFileSystem failing(io::make_posix_file_system());
  failing.claim_to_set_owners();
  failing.fail(testing::FileOperation::kSetOwner, 1, EIO, /*lasting=*/true);
  const Metadata another{0640, ::geteuid() + 1234, ::getegid(), {77, 5}};
  EXPECT_EQ(apply_metadata(failing, open(), another).system_errno(), EIO);
  EXPECT_FALSE(failing.has_refused_owners());
}

TEST_F(MetadataTest, WhatIsRightIsNotTouched) {
  ASSERT_TRUE(apply_metadata(*files, open(), own(0640)).ok());
  const struct stat before = directory.lstat("file");
  auto updated = update("file", own(0640), true);
  ASSERT_TRUE(updated.ok());
  EXPECT_FALSE(*updated);
  ASSERT_TRUE(apply_metadata(*files, open(), own(0640)).ok());
  EXPECT_EQ(directory.lstat("file").st_ctim.tv_nsec, before.st_ctim.tv_nsec);
}

TEST_F(MetadataTest, UpdateChangesWhatDiffers) {
  directory.make_directory("directory");
  for (const char* name : {"file", "directory"}) {
    auto updated = update(name, own(0711), true);
    ASSERT_TRUE(updated.ok());
    EXPECT_TRUE(*updated);
    EXPECT_EQ(directory.lstat(name).st_mode & 07777u, 0711u);
    EXPECT_EQ(directory.lstat(name).st_mtim.tv_sec, 77);
    EXPECT_EQ(directory.lstat(name).st_mtim.tv_nsec, 5);
  }
}

TEST_F(MetadataTest, UpdateLeavesTheMtimeWhereItIsNotAskedFor) {
  const struct stat before = directory.lstat("file");
  auto updated = update("file", own(0711), false);
  ASSERT_TRUE(updated.ok());
  EXPECT_TRUE(*updated);
  EXPECT_EQ(directory.lstat("file").st_mode & 07777u, 0711u);
  EXPECT_EQ(directory.lstat("file").st_mtim.tv_sec, before.st_mtim.tv_sec);
}

TEST_F(MetadataTest, SymlinkGetsItsOwnTimeAndOwner) {
  directory.make_symlink("file", "link");
  const struct stat before = directory.lstat("file");
  Metadata metadata = own(0777);
  if (files->may_set_owner()) metadata.uid = 1234;
  ASSERT_TRUE(apply_symlink_metadata(*files, root, "link", metadata).ok());
  EXPECT_EQ(directory.lstat("link").st_mtim.tv_sec, 77);
  EXPECT_EQ(directory.lstat("link").st_uid, metadata.uid);
  EXPECT_EQ(directory.lstat("file").st_mtim.tv_sec, before.st_mtim.tv_sec);
  EXPECT_EQ(directory.lstat("file").st_uid, before.st_uid);
}

}  // namespace
}  // namespace fgsync::storage
