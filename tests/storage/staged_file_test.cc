#include "storage/staged_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "storage/storage_fixture.h"

namespace fgsync::storage {
namespace {

using testing::as_bytes;

class StagedFileTest : public testing::StorageFixture {
 protected:
  StagedFileTest() { directory.make_directory("staging"); }

  std::unique_ptr<StagedFile> create(std::uint64_t size, DirectIo direct = DirectIo::kAuto) {
    auto file = StagedFile::create(*files, open_staging(), "0", size, direct);
    EXPECT_TRUE(file.ok()) << file.status().message();
    return file.ok() ? std::move(*file) : nullptr;
  }
  DirectoryReference open_staging() {
    return std::make_shared<const io::FileHandle>(open_path(directory.path("staging")));
  }
  static Metadata metadata() { return {0640, ::geteuid(), ::getegid(), {-100, 123'456'789}}; }
};

TEST_F(StagedFileTest, PublishedFileReplacesTheOldOneWithItsMetadata) {
  directory.write("name", "old contents");
  {
    const auto file = create(11);
    ASSERT_NE(file, nullptr);
    ASSERT_TRUE(file->write(as_bytes("world"), 6).ok());
    ASSERT_TRUE(file->write(as_bytes("hello "), 0).ok());
    ASSERT_TRUE(file->finish(metadata()).ok());
    ASSERT_TRUE(file->sync().ok());
    EXPECT_EQ(directory.read("name"), "old contents");
    ASSERT_TRUE(file->publish(root, "name").ok());
  }
  EXPECT_EQ(directory.read("name"), "hello world");
  EXPECT_FALSE(directory.exists("staging/0"));
  const struct stat status = directory.lstat("name");
  EXPECT_EQ(status.st_mode, S_IFREG | 0640u);
  EXPECT_EQ(status.st_mtim.tv_sec, -100);
  EXPECT_EQ(status.st_mtim.tv_nsec, 123'456'789);
}

TEST_F(StagedFileTest, WhatIsOnTheDiskCanBeReadBackAfterASync) {
  for (const DirectIo direct : {DirectIo::kNever, DirectIo::kAuto}) {
    const std::string contents(kDirectIoFileBytesMin + 5, 'x');
    auto file = create(contents.size(), direct);
    ASSERT_NE(file, nullptr);
    if (file->direct_alignment() == 0) {
      ASSERT_TRUE(file->write(as_bytes(contents), 0).ok());
    }
    ASSERT_TRUE(file->finish(metadata()).ok());
    ASSERT_TRUE(file->sync().ok());
    if (direct == DirectIo::kNever) file->close();
    ASSERT_TRUE(file->open_for_reading().ok());
    std::vector<std::byte> bytes(contents.size() + 10);
    auto count = files->read(file->handle(), bytes, 0);
    ASSERT_TRUE(count.ok());
    EXPECT_EQ(*count, contents.size());  // an odd end, which no direct read could reach
    if (file->direct_alignment() == 0) {
      EXPECT_EQ(std::memcmp(bytes.data(), contents.data(), contents.size()), 0);
    }
  }
}

TEST_F(StagedFileTest, ReaderOfTheOldFileKeepsTheOldContents) {
  directory.write("name", "old");
  auto reader = files->open_file(root, "name", io::OpenMode::kRead);
  ASSERT_TRUE(reader.ok());
  const auto file = create(3);
  ASSERT_NE(file, nullptr);
  ASSERT_TRUE(file->write(as_bytes("new"), 0).ok());
  ASSERT_TRUE(file->finish(metadata()).ok());
  ASSERT_TRUE(file->publish(root, "name").ok());
  std::string text(3, '?');
  ASSERT_TRUE(
      files->read(*reader, std::as_writable_bytes(std::span(text.data(), text.size())), 0).ok());
  EXPECT_EQ(text, "old");
}

TEST_F(StagedFileTest, UnpublishedFileDisappears) {
  {
    const auto file = create(1 << 20);
    ASSERT_NE(file, nullptr);
    EXPECT_TRUE(directory.exists("staging/0"));
    EXPECT_EQ(directory.lstat("staging/0").st_mode, S_IFREG | 0600u);
  }
  EXPECT_FALSE(directory.exists("staging/0"));
}

TEST_F(StagedFileTest, DirectoryUnderTheFinalNameIsAnErrorAndTheFileDisappears) {
  directory.make_directory("name");
  {
    const auto file = create(0);
    ASSERT_NE(file, nullptr);
    ASSERT_TRUE(file->finish(metadata()).ok());
    const Status status = file->publish(root, "name");
    EXPECT_EQ(status.code(), ErrorCode::kIoError);
    EXPECT_EQ(status.system_errno(), EISDIR);
  }
  EXPECT_FALSE(directory.exists("staging/0"));
}

TEST_F(StagedFileTest, SymlinkUnderTheFinalNameIsReplacedNotFollowed) {
  directory.write("victim", "untouched");
  directory.make_symlink("victim", "name");
  const auto file = create(3);
  ASSERT_NE(file, nullptr);
  ASSERT_TRUE(file->write(as_bytes("new"), 0).ok());
  ASSERT_TRUE(file->finish(metadata()).ok());
  ASSERT_TRUE(file->publish(root, "name").ok());
  EXPECT_EQ(directory.lstat("name").st_mode & S_IFMT, static_cast<mode_t>(S_IFREG));
  EXPECT_EQ(directory.read("victim"), "untouched");
}

TEST_F(StagedFileTest, TakenStagingNameIsRefusedAndLeftAlone) {
  directory.write("staging/0", "taken");
  auto file = StagedFile::create(*files, open_staging(), "0", 1, DirectIo::kAuto);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().system_errno(), EEXIST);
  EXPECT_EQ(directory.read("staging/0"), "taken");
}

TEST_F(StagedFileTest, FinishedFileHasItsExactSize) {
  for (const std::uint64_t size : {0u, 5u, 300'000u}) {
    const auto file = create(size);
    ASSERT_NE(file, nullptr);
    // Written past its end, as a rounded up tail is.
    ASSERT_TRUE(file->write(as_bytes(std::string(100, 'x')), size).ok());
    ASSERT_TRUE(file->finish(metadata()).ok());
    EXPECT_EQ(directory.lstat("staging/0").st_size, static_cast<off_t>(size));
  }
}

TEST_F(StagedFileTest, DirectWriteWithARoundedTailEndsAtTheExactSize) {
  const std::size_t size = limits::kPackedFileBytesMax + 1234;
  auto created = StagedFile::create(*files, open_staging(), "0", size, DirectIo::kAlways);
  if (!created.ok()) {
    EXPECT_EQ(created.status().code(), ErrorCode::kUnsupported);
    EXPECT_FALSE(directory.exists("staging/0"));
    GTEST_SKIP() << "no direct I/O in " << directory.path();
  }
  StagedFile& file = **created;
  const std::size_t alignment = file.direct_alignment();
  ASSERT_GT(alignment, 0u);
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* memory = nullptr;
  ASSERT_EQ(::posix_memalign(&memory, limits::kSlotAlignment, rounded), 0);
  const std::span bytes(static_cast<std::byte*>(memory), rounded);
  for (std::size_t at = 0; at < rounded; ++at) bytes[at] = static_cast<std::byte>(at * 31 % 251);
  ASSERT_TRUE(files->write(file.handle(), bytes, 0).ok());
  ASSERT_TRUE(file.finish(metadata()).ok());
  ASSERT_TRUE(file.publish(root, "name").ok());
  EXPECT_EQ(directory.lstat("name").st_mtim.tv_nsec, 123'456'789);
  const std::string contents = directory.read("name");
  EXPECT_EQ(contents.size(), size);
  EXPECT_EQ(contents, std::string(static_cast<const char*>(memory), size));
  std::free(memory);
}

TEST_F(StagedFileTest, AlwaysDirectIsUnsupportedInMemoryAndAutomaticFallsBack) {
  struct stat status;
  if (::stat("/dev/shm", &status) != 0) GTEST_SKIP() << "no /dev/shm here";
  testing::TemporaryDirectory in_memory("/dev/shm");
  const auto staging = std::make_shared<const io::FileHandle>(open_path(in_memory.path()));
  auto direct = StagedFile::create(*files, staging, "0", kDirectIoFileBytesMin, DirectIo::kAlways);
  if (direct.ok()) GTEST_SKIP() << "/dev/shm offers direct I/O here";
  EXPECT_EQ(direct.status().code(), ErrorCode::kUnsupported);
  EXPECT_FALSE(in_memory.exists("0"));
  auto automatic = StagedFile::create(*files, staging, "0", kDirectIoFileBytesMin, DirectIo::kAuto);
  ASSERT_TRUE(automatic.ok()) << automatic.status().message();
  EXPECT_EQ((*automatic)->direct_alignment(), 0u);
  EXPECT_FALSE((*automatic)->may_block());
}

}  // namespace
}  // namespace fgsync::storage
