#include "storage/source_file.h"

#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "storage/direct_io.h"
#include "storage/storage_fixture.h"

namespace fgsync::storage {
namespace {

class SourceFileTest : public testing::StorageFixture {
 protected:
  SourceIdentity identity_of(const std::string& name) {
    const struct stat status = directory.lstat(name);
    return {static_cast<std::uint64_t>(status.st_size),
            {status.st_mtim.tv_sec, static_cast<std::uint32_t>(status.st_mtim.tv_nsec)}};
  }
  std::unique_ptr<SourceFile> open(const std::string& name) {
    auto file = SourceFile::open(*files, root, name, identity_of(name), DirectIo::kAuto);
    EXPECT_TRUE(file.ok()) << file.status().message();
    return file.ok() ? std::move(*file) : nullptr;
  }
  ErrorCode code_of_opening(const SourceIdentity& expected) {
    return SourceFile::open(*files, root, "file", expected, DirectIo::kAuto).status().code();
  }
};

std::string read(const SourceFile& file, std::size_t bytes, std::uint64_t offset) {
  std::string text(bytes, '?');
  const Status status =
      file.read(std::as_writable_bytes(std::span(text.data(), text.size())), offset);
  EXPECT_TRUE(status.ok()) << status.message();
  return text;
}

TEST_F(SourceFileTest, ReadsWhatIsThereAndStaysUnchanged) {
  directory.write("file", "0123456789");
  const auto file = open("file");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->size(), 10u);
  EXPECT_FALSE(file->is_direct());
  EXPECT_EQ(read(*file, 4, 3), "3456");
  EXPECT_EQ(read(*file, 0, 10), "");
  EXPECT_TRUE(file->check_unchanged().ok());
}

TEST_F(SourceFileTest, ChangeBetweenWalkAndOpeningIsNoticed) {
  directory.write("file", "0123456789");
  const SourceIdentity seen = identity_of("file");
  EXPECT_EQ(code_of_opening(seen), ErrorCode::kOk);
  EXPECT_EQ(code_of_opening({seen.size + 1, seen.mtime}), ErrorCode::kSourceChanged);
  EXPECT_EQ(code_of_opening({seen.size, {seen.mtime.seconds, seen.mtime.nanoseconds ^ 1u}}),
            ErrorCode::kSourceChanged);
}

TEST_F(SourceFileTest, VanishedOrReplacedFileIsSourceChanged) {
  directory.write("file", "0123456789");
  const SourceIdentity seen = identity_of("file");
  const std::string path = directory.path("file");
  ASSERT_EQ(::rename(path.c_str(), directory.path("moved").c_str()), 0);
  EXPECT_EQ(code_of_opening(seen), ErrorCode::kSourceChanged);
  directory.make_symlink("moved", "file");
  EXPECT_EQ(code_of_opening(seen), ErrorCode::kSourceChanged);
  ASSERT_EQ(::unlink(path.c_str()), 0);
  directory.make_fifo("file");
  EXPECT_EQ(code_of_opening(seen), ErrorCode::kSourceChanged);
  ASSERT_EQ(::unlink(path.c_str()), 0);
  directory.make_directory("file");
  EXPECT_EQ(code_of_opening(seen), ErrorCode::kSourceChanged);
}

TEST_F(SourceFileTest, UnreadableFileIsPermissionDenied) {
  directory.write("file", "0123456789");
  ASSERT_EQ(::chmod(directory.path("file").c_str(), 0), 0);
  const SourceIdentity seen = identity_of("file");
  const testing::UnprivilegedScope unprivileged;
  EXPECT_EQ(code_of_opening(seen), ErrorCode::kPermissionDenied);
}

TEST_F(SourceFileTest, TruncationWhileOpenIsNoticedByReadingAndByChecking) {
  directory.write("file", "0123456789");
  const auto file = open("file");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(::truncate(directory.path("file").c_str(), 5), 0);
  std::array<std::byte, 10> bytes;
  EXPECT_EQ(file->read(bytes, 0).code(), ErrorCode::kSourceChanged);
  EXPECT_EQ(file->check_unchanged().code(), ErrorCode::kSourceChanged);
}

TEST_F(SourceFileTest, GrowthWhileOpenIsNoticed) {
  directory.write("file", "0123456789");
  const auto file = open("file");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(::truncate(directory.path("file").c_str(), 11), 0);
  EXPECT_EQ(file->check_unchanged().code(), ErrorCode::kSourceChanged);
}

TEST_F(SourceFileTest, NewMtimeWhileOpenIsNoticed) {
  directory.write("file", "0123456789");
  const auto file = open("file");
  ASSERT_NE(file, nullptr);
  const timespec times[2] = {{0, UTIME_OMIT}, {1'000'000'000, 1}};
  ASSERT_EQ(::utimensat(AT_FDCWD, directory.path("file").c_str(), times, 0), 0);
  EXPECT_EQ(file->check_unchanged().code(), ErrorCode::kSourceChanged);
}

TEST_F(SourceFileTest, RewriteOfTheSameSizeWithItsMtimePutBackIsNoticed) {
  directory.write("file", "0123456789");
  const auto file = open("file");
  ASSERT_NE(file, nullptr);
  const struct stat before = directory.lstat("file");
  const timespec times[2] = {{0, UTIME_OMIT}, before.st_mtim};
  // The clock of file times ticks every few milliseconds: again until the ctime has moved.
  struct stat after = before;
  while (after.st_ctim.tv_sec == before.st_ctim.tv_sec &&
         after.st_ctim.tv_nsec == before.st_ctim.tv_nsec) {
    directory.write("file", "9876543210");
    ASSERT_EQ(::utimensat(AT_FDCWD, directory.path("file").c_str(), times, 0), 0);
    after = directory.lstat("file");
  }
  ASSERT_EQ(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
  ASSERT_EQ(after.st_size, before.st_size);
  EXPECT_EQ(file->check_unchanged().code(), ErrorCode::kSourceChanged);
}

// The kernel's own files have one size for all contents: 0 in procfs, a page in sysfs.
TEST_F(SourceFileTest, ContentsBeyondTheSizeAreNoticed) {
  const auto proc = open_path("/proc");
  auto seen = files->stat_at(proc, "version");
  ASSERT_TRUE(seen.ok());
  ASSERT_EQ(seen->size, 0u);
  auto file = SourceFile::open(*files, proc, "version", {seen->size, seen->mtime}, DirectIo::kAuto);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE((*file)->read({}, 0).ok());
  EXPECT_EQ((*file)->check_unchanged().code(), ErrorCode::kSourceChanged);
}

TEST_F(SourceFileTest, ContentsThatEndBeforeTheSizeAreNoticed) {
  auto sys = files->open_path("/sys/kernel");
  auto seen = sys.ok() ? files->stat_at(*sys, "fscaps") : Result<io::FileStatus>(sys.status());
  if (!seen.ok()) GTEST_SKIP() << "no /sys/kernel/fscaps: " << seen.status().message();
  auto file = SourceFile::open(*files, *sys, "fscaps", {seen->size, seen->mtime}, DirectIo::kAuto);
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::vector<std::byte> bytes(seen->size);
  EXPECT_EQ((*file)->read(bytes, 0).code(), ErrorCode::kSourceChanged);
}

TEST_F(SourceFileTest, DirectReadGivesTheBytesWithAnUnalignedTail) {
  const std::size_t size = limits::kPackedFileBytesMax + 1234;
  std::string contents(size, '\0');
  for (std::size_t at = 0; at < size; ++at) contents[at] = static_cast<char>(at * 31 % 251);
  directory.write("file", contents);
  auto file = SourceFile::open(*files, root, "file", identity_of("file"), DirectIo::kAlways);
  if (!file.ok()) {
    EXPECT_EQ(file.status().code(), ErrorCode::kUnsupported);
    GTEST_SKIP() << "no direct I/O in " << directory.path();
  }
  const std::size_t alignment = (*file)->direct_alignment();
  ASSERT_GT(alignment, 0u);
  EXPECT_TRUE((*file)->is_direct());
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* memory = nullptr;
  ASSERT_EQ(::posix_memalign(&memory, limits::kSlotAlignment, rounded), 0);
  auto count = files->read((*file)->handle(), {static_cast<std::byte*>(memory), rounded}, 0);
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, size);
  EXPECT_EQ(contents.compare(0, size, static_cast<const char*>(memory), size), 0);
  std::free(memory);
  EXPECT_TRUE((*file)->check_unchanged().ok());
}

TEST_F(SourceFileTest, DirectReadingIsChosenBySizeAndOption) {
  directory.write("small", "small");
  directory.write("large", "");
  ASSERT_EQ(::truncate(directory.path("large").c_str(), kDirectIoFileBytesMin), 0);
  const auto is_direct = [&](const std::string& name, DirectIo direct) {
    auto file = SourceFile::open(*files, root, name, identity_of(name), direct);
    EXPECT_TRUE(file.ok()) << file.status().message();
    return file.ok() && (*file)->is_direct();
  };
  EXPECT_FALSE(is_direct("small", DirectIo::kAuto));
  EXPECT_FALSE(is_direct("small", DirectIo::kAlways));
  EXPECT_FALSE(is_direct("large", DirectIo::kNever));
  auto always = SourceFile::open(*files, root, "large", identity_of("large"), DirectIo::kAlways);
  EXPECT_EQ(is_direct("large", DirectIo::kAuto), always.ok());
}

}  // namespace
}  // namespace fgsync::storage
