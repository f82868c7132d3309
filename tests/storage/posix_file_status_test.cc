// What the production file system says and sets of a file's status, against lstat(2).
#include "io/posix_file_status.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <utility>

#include "storage/storage_fixture.h"

namespace fgsync {
namespace {

using io::FileHandle;
using io::FileStatus;
using io::FileTime;
using io::FileType;
using io::OpenMode;

using PosixFileStatus = testing::StorageFixture;

void expect_same(const FileStatus& status, const struct stat& expected) {
  EXPECT_EQ(status.mode, expected.st_mode & 07777u);
  EXPECT_EQ(status.uid, expected.st_uid);
  EXPECT_EQ(status.gid, expected.st_gid);
  EXPECT_EQ(status.size, static_cast<std::uint64_t>(expected.st_size));
  EXPECT_EQ(status.links, expected.st_nlink);
  EXPECT_EQ(status.mtime.seconds, expected.st_mtim.tv_sec);
  EXPECT_EQ(status.mtime.nanoseconds, expected.st_mtim.tv_nsec);
  EXPECT_EQ(status.ctime.seconds, expected.st_ctim.tv_sec);
  EXPECT_EQ(status.ctime.nanoseconds, expected.st_ctim.tv_nsec);
  EXPECT_EQ(status.device, expected.st_dev);
  EXPECT_EQ(status.inode, expected.st_ino);
}

TEST_F(PosixFileStatus, StatusAgreesWithLstatForEveryType) {
  directory.write("file", "12345");
  directory.make_directory("directory");
  directory.make_symlink("nowhere", "symlink");
  directory.make_fifo("fifo");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  directory.path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(listener);

  const std::pair<const char*, FileType> expected[] = {{"file", FileType::kRegular},
                                                       {"directory", FileType::kDirectory},
                                                       {"symlink", FileType::kSymlink},
                                                       {"fifo", FileType::kFifo},
                                                       {"socket", FileType::kSocket}};
  for (const auto& [name, type] : expected) {
    auto status = files->stat_at(root, name);
    ASSERT_TRUE(status.ok()) << name;
    EXPECT_EQ(status->type, type) << name;
    expect_same(*status, directory.lstat(name));
  }
  auto device = files->stat_path("/dev/null", false);
  ASSERT_TRUE(device.ok());
  EXPECT_EQ(device->type, FileType::kCharacterDevice);
}

TEST_F(PosixFileStatus, StatusOfAnOpenFileAgreesWithLstat) {
  directory.write("file", "12345");
  auto status = files->stat(open_file("file", OpenMode::kRead));
  ASSERT_TRUE(status.ok());
  expect_same(*status, directory.lstat("file"));
}

TEST_F(PosixFileStatus, MountTellsFileSystemsApart) {
  directory.write("file", "");
  auto file = files->stat_at(root, "file");
  auto holder = files->stat(root);
  auto elsewhere = files->stat_path("/proc/self", true);
  ASSERT_TRUE(file.ok() && holder.ok() && elsewhere.ok());
  EXPECT_EQ(file->mount, holder->mount);
  EXPECT_NE(file->mount, elsewhere->mount);
}

TEST_F(PosixFileStatus, TimesKeepNanosecondsAndMayBeBefore1970) {
  directory.write("file", "");
  const struct stat before = directory.lstat("file");
  FileHandle file = open_file("file", OpenMode::kRead);
  for (const FileTime time : {FileTime{-5, 999'999'999}, FileTime{1'700'000'000, 123'456'789},
                              FileTime{0, 1}, FileTime{-2'000'000'000, 0}}) {
    ASSERT_TRUE(files->set_mtime(file, time).ok());
    const struct stat status = directory.lstat("file");
    EXPECT_EQ(status.st_mtim.tv_sec, time.seconds);
    EXPECT_EQ(status.st_mtim.tv_nsec, time.nanoseconds);
    EXPECT_EQ(status.st_atim.tv_sec, before.st_atim.tv_sec);
    EXPECT_EQ(status.st_atim.tv_nsec, before.st_atim.tv_nsec);
    auto read = files->stat(file);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->mtime, time);
  }
}

TEST_F(PosixFileStatus, NanosecondsOutOfRangeAreRefused) {
  directory.write("file", "");
  FileHandle file = open_file("file", OpenMode::kRead);
  for (const std::uint32_t nanoseconds :
       {std::uint32_t{1'000'000'000}, std::uint32_t{UTIME_NOW}, std::uint32_t{UTIME_OMIT}}) {
    EXPECT_EQ(files->set_mtime(file, {0, nanoseconds}).system_errno(), EINVAL);
  }
}

TEST_F(PosixFileStatus, MetadataByNameIsSetOnTheSymlinkNotItsTarget) {
  directory.write("file", "");
  directory.make_symlink("file", "link");
  const struct stat before = directory.lstat("file");
  ASSERT_TRUE(files->set_mtime_at(root, "link", {-7, 5}).ok());
  EXPECT_EQ(directory.lstat("link").st_mtim.tv_sec, -7);
  EXPECT_EQ(directory.lstat("link").st_mtim.tv_nsec, 5);
  EXPECT_FALSE(files->set_mode_at(root, "link", 0777).ok());
  if (files->may_set_owner()) {
    ASSERT_TRUE(files->set_owner_at(root, "link", 1234, 4321).ok());
    EXPECT_EQ(directory.lstat("link").st_uid, 1234u);
    EXPECT_EQ(directory.lstat("link").st_gid, 4321u);
  }
  const struct stat after = directory.lstat("file");
  EXPECT_EQ(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_uid, before.st_uid);
}

TEST_F(PosixFileStatus, ModeKeepsSetuidSetgidAndSticky) {
  directory.write("file", "");
  directory.make_directory("directory");
  ASSERT_TRUE(files->set_mode_at(root, "file", 04711).ok());
  EXPECT_EQ(directory.lstat("file").st_mode & 07777u, 04711u);
  ASSERT_TRUE(files->set_mode_at(root, "directory", 03755).ok());
  EXPECT_EQ(directory.lstat("directory").st_mode & 07777u, 03755u);
  ASSERT_TRUE(files->set_mode(open_file("file", OpenMode::kRead), 0400).ok());
  EXPECT_EQ(directory.lstat("file").st_mode & 07777u, 0400u);
}

}  // namespace
}  // namespace fgsync
