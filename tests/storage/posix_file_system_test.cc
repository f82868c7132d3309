// The production file system against lstat(2), readlink(2) and fcntl(2) themselves; what it says
// and sets of a file's status is in posix_file_status_test.cc.
#include "io/posix_file_system.h"

#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <cerrno>
#include <climits>
#include <set>
#include <vector>

#include "storage/storage_fixture.h"

namespace fgsync {
namespace {

using io::FileHandle;
using io::FileType;
using io::OpenMode;
using testing::as_bytes;
using testing::TemporaryDirectory;
using testing::UnprivilegedScope;

class PosixFileSystem : public testing::StorageFixture {
 protected:
  std::vector<std::string> names_of(const FileHandle& listed, std::size_t count) {
    std::vector<std::string> names;
    auto reader = files->list(listed);
    EXPECT_TRUE(reader.ok());
    std::vector<io::DirectoryEntry> entries;
    for (;;) {
      entries.clear();
      auto more = (*reader)->next(count, entries);
      EXPECT_TRUE(more.ok());
      if (!more.ok() || !*more) return names;
      EXPECT_LE(entries.size(), count);
      for (const auto& entry : entries) names.push_back(entry.name);
    }
  }
};

TEST_F(PosixFileSystem, CreatedFileIsPrivateAndMustBeNew) {
  FileHandle file = open_file("new", OpenMode::kCreate);
  EXPECT_EQ(directory.lstat("new").st_mode, S_IFREG | 0600u);
  auto again = files->open_file(root, "new", OpenMode::kCreate);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().system_errno(), EEXIST);
  EXPECT_EQ(again.status().message(), "creating: File exists");
}

TEST_F(PosixFileSystem, OpeningForUpdateKeepsWhatIsThereAndMakesNothing) {
  directory.write("file", "old contents");
  FileHandle file = open_file("file", OpenMode::kUpdate);
  ASSERT_TRUE(files->write(file, as_bytes("new"), 0).ok());
  EXPECT_EQ(directory.read("file"), "new contents");
  auto missing = files->open_file(root, "missing", OpenMode::kUpdate);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().system_errno(), ENOENT);
  directory.make_directory("directory");
  auto opened = files->open_file(root, "directory", OpenMode::kUpdate);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().system_errno(), EISDIR);
}

TEST_F(PosixFileSystem, CreatingDoesNotWriteThroughASymlink) {
  directory.make_symlink("victim", "link");
  EXPECT_FALSE(files->open_file(root, "link", OpenMode::kCreate).ok());
  EXPECT_FALSE(directory.exists("victim"));
}

TEST_F(PosixFileSystem, SymlinkIsNotFollowed) {
  directory.write("file", "secret");
  directory.make_directory("directory");
  directory.make_symlink("file", "to-file");
  directory.make_symlink("directory", "to-directory");
  auto file = files->open_file(root, "to-file", OpenMode::kRead);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().system_errno(), ELOOP);
  auto opened = files->open_directory(root, "to-directory");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().system_errno(), ENOTDIR);
}

TEST_F(PosixFileSystem, OnlyARegularFileIsOpenedForReadingAndAFifoDoesNotBlock) {
  directory.make_fifo("fifo");
  directory.make_directory("directory");
  auto fifo = files->open_file(root, "fifo", OpenMode::kRead);
  ASSERT_FALSE(fifo.ok());
  EXPECT_EQ(fifo.status().code(), ErrorCode::kIoError);
  EXPECT_EQ(fifo.status().message(), "opening: not a regular file");
  EXPECT_FALSE(files->open_file(root, "fifo", OpenMode::kReadDirect).ok());
  auto opened = files->open_file(root, "directory", OpenMode::kRead);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().system_errno(), EISDIR);
}

TEST_F(PosixFileSystem, DescriptorsCloseOnExecAndFilesWaitForTheDisk) {
  directory.write("file", "");
  directory.make_directory("directory");
  auto opened = files->open_directory(root, "directory");
  ASSERT_TRUE(opened.ok());
  FileHandle file = open_file("file", OpenMode::kRead);
  FileHandle created = open_file("new", OpenMode::kCreate);
  for (const int descriptor :
       {root.descriptor(), opened->descriptor(), file.descriptor(), created.descriptor()}) {
    EXPECT_EQ(::fcntl(descriptor, F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(::fcntl(descriptor, F_GETFL) & O_NONBLOCK, 0);
  }
}

TEST_F(PosixFileSystem, NameThatLeavesItsDirectoryIsAProgrammersError) {
  // Forked from here, so that what dies leaves no directory of its own behind.
  ::testing::FLAGS_gtest_death_test_style = "fast";
  EXPECT_DEATH((void)files->open_directory(root, ".."), "is_single_component");
  EXPECT_DEATH((void)files->unlink(root, "a/b"), "is_single_component");
  EXPECT_DEATH((void)files->stat_at(root, ""), "is_single_component");
}

// As container runtimes older than the call do: openat2(2) is EPERM from here on.
bool forbid_openat2() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {std::size(program), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(PosixFileSystem, WorksTheSameWhereOpenat2IsForbidden) {
  // Starts a fresh process, which has not yet learned that this kernel has the call.
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto in_a_container = [this] {
    directory.make_directory("directory");
    directory.make_symlink("directory", "link");
    if (!forbid_openat2()) ::_exit(1);
    if (!files->open_directory(root, "directory").ok()) ::_exit(2);
    if (files->open_directory(root, "link").status().system_errno() != ENOTDIR) ::_exit(3);
    if (!files->open_file(root, "new", OpenMode::kCreate).ok()) ::_exit(4);
    if (!files->open_file(root, "new", OpenMode::kRead).ok()) ::_exit(5);
    testing::remove_contents(root.descriptor());
    ::rmdir(directory.path().c_str());
    ::_exit(0);
  };
  EXPECT_EXIT(in_a_container(), ::testing::ExitedWithCode(0), "");
}

TEST_F(PosixFileSystem, ReadsAndWritesAtOffsets) {
  FileHandle file = open_file("file", OpenMode::kCreate);
  ASSERT_TRUE(files->write(file, as_bytes("world"), 6).ok());
  ASSERT_TRUE(files->write(file, as_bytes("hello "), 0).ok());
  EXPECT_EQ(directory.read("file"), "hello world");
  std::string text(32, '?');
  const auto bytes = std::as_writable_bytes(std::span(text.data(), text.size()));
  auto count = files->read(file, bytes, 6);
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, 5u);
  EXPECT_EQ(text.substr(0, 5), "world");
  auto beyond = files->read(file, bytes, 100);
  ASSERT_TRUE(beyond.ok());
  EXPECT_EQ(*beyond, 0u);
}

TEST_F(PosixFileSystem, AllocationReservesRoomAndSetsTheSize) {
  FileHandle file = open_file("file", OpenMode::kCreate);
  constexpr std::uint64_t kSize = (1 << 20) + 5;
  ASSERT_TRUE(files->allocate(file, kSize).ok());
  EXPECT_EQ(directory.lstat("file").st_size, static_cast<off_t>(kSize));
  struct statfs system;
  ASSERT_EQ(::statfs(directory.path().c_str(), &system), 0);
  if (system.f_type == EXT4_SUPER_MAGIC || system.f_type == XFS_SUPER_MAGIC) {
    EXPECT_GE(static_cast<std::uint64_t>(directory.lstat("file").st_blocks) * 512, kSize);
  }
  ASSERT_TRUE(files->allocate(file, 3).ok());
  EXPECT_EQ(directory.lstat("file").st_size, 3);
  ASSERT_TRUE(files->allocate(file, 0).ok());
  EXPECT_EQ(directory.lstat("file").st_size, 0);
}

TEST_F(PosixFileSystem, AllocationInMemoryOnlySetsTheSize) {
  struct statfs system;
  if (::statfs("/dev/shm", &system) != 0 || system.f_type != TMPFS_MAGIC) {
    GTEST_SKIP() << "/dev/shm is no tmpfs here";
  }
  TemporaryDirectory in_memory("/dev/shm");
  FileHandle base = open_path(in_memory.path());
  auto file = files->open_file(base, "file", OpenMode::kCreate);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(files->allocate(*file, 1 << 20).ok());
  EXPECT_EQ(in_memory.lstat("file").st_size, 1 << 20);
  EXPECT_EQ(in_memory.lstat("file").st_blocks, 0);
  EXPECT_TRUE(files->is_in_memory(*file));
  EXPECT_FALSE(files->is_in_memory(open_path("/proc")));
}

TEST_F(PosixFileSystem, SizeThatNoFileCanHaveIsAnError) {
  FileHandle file = open_file("file", OpenMode::kCreate);
  EXPECT_EQ(files->allocate(file, std::uint64_t{1} << 63).code(), ErrorCode::kIoError);
}

TEST_F(PosixFileSystem, FullDeviceIsNoSpace) {
  const FileHandle full(files.get(), ::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full);
  const Status status = files->write(full, as_bytes("x"), 0);
  EXPECT_EQ(status.code(), ErrorCode::kNoSpace);
  EXPECT_EQ(status.message(), "writing: No space left on device");
}

TEST_F(PosixFileSystem, ListingGivesEveryNameOnce) {
  std::multiset<std::string> expected;
  for (int number = 0; number < 2000; ++number) {
    // Together several fills of the buffer.
    const std::string name = std::to_string(number) + std::string(100, 'n');
    directory.write(name, "");
    expected.insert(name);
  }
  for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{100'000}}) {
    const auto names = names_of(root, count);
    EXPECT_EQ(std::multiset<std::string>(names.begin(), names.end()), expected);
  }
}

TEST_F(PosixFileSystem, ListingsOfOneHandleDoNotDisturbEachOther) {
  for (const char* name : {"a", "b", "c"}) directory.write(name, "");
  auto first = files->list(root);
  ASSERT_TRUE(first.ok());
  std::vector<io::DirectoryEntry> entries;
  ASSERT_TRUE((*first)->next(1, entries).ok());
  EXPECT_EQ(names_of(root, 10).size(), 3u);
  for (;;) {
    auto more = (*first)->next(1, entries);
    ASSERT_TRUE(more.ok());
    if (!*more) break;
  }
  EXPECT_EQ(entries.size(), 3u);
}

TEST_F(PosixFileSystem, NamesAreBytes) {
  const std::set<std::string> expected = {
      "new\nline", " space ", "-rf", "\xff\xfe", "*", "...", std::string(255, 'x')};
  for (const std::string& name : expected) {
    ASSERT_TRUE(files->open_file(root, name, OpenMode::kCreate).ok());
    EXPECT_TRUE(directory.exists(name));
  }
  const auto names = names_of(root, 100);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), expected);
  for (const std::string& name : expected) EXPECT_TRUE(files->unlink(root, name).ok());
}

TEST_F(PosixFileSystem, SymlinkTargetsOfAnyLengthComeBackWhole) {
  for (const std::string& target : {std::string("a"), std::string(PATH_MAX - 1, 't')}) {
    ASSERT_TRUE(files->make_symlink(root, "link", target).ok());
    auto read = files->read_link(root, "link");
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, target);
    ASSERT_TRUE(files->unlink(root, "link").ok());
  }
}

TEST_F(PosixFileSystem, RenameReplacesAFileButNotADirectory) {
  directory.write("new", "new");
  directory.write("old", "old");
  directory.make_directory("directory");
  ASSERT_TRUE(files->rename(root, "new", root, "old").ok());
  EXPECT_EQ(directory.read("old"), "new");
  EXPECT_FALSE(directory.exists("new"));
  EXPECT_EQ(files->rename(root, "old", root, "directory").system_errno(), EISDIR);
}

TEST_F(PosixFileSystem, RemovalDistinguishesFilesFromDirectories) {
  directory.write("file", "");
  directory.make_directory("directory");
  EXPECT_EQ(files->remove_directory(root, "file").system_errno(), ENOTDIR);
  EXPECT_EQ(files->unlink(root, "directory").system_errno(), EISDIR);
  EXPECT_TRUE(files->unlink(root, "file").ok());
  EXPECT_TRUE(files->remove_directory(root, "directory").ok());
  EXPECT_EQ(files->unlink(root, "file").code(), ErrorCode::kNotFound);
}

TEST_F(PosixFileSystem, LockIsHeldByOneDescriptionAndEndsWithIt) {
  FileHandle first = open_root();
  FileHandle second = open_root();
  auto locked = files->try_lock(first);
  ASSERT_TRUE(locked.ok());
  EXPECT_TRUE(*locked);
  auto refused = files->try_lock(second);
  ASSERT_TRUE(refused.ok());
  EXPECT_FALSE(*refused);
  first.reset();
  auto free = files->try_lock(second);
  ASSERT_TRUE(free.ok());
  EXPECT_TRUE(*free);
}

TEST_F(PosixFileSystem, TypedPathsMayContainSymlinksAndAreResolved) {
  ASSERT_TRUE(files->make_directory_path(directory.path("real"), 0750).ok());
  EXPECT_EQ(directory.lstat("real").st_mode & S_IFMT, static_cast<mode_t>(S_IFDIR));
  directory.make_symlink("real", "link");
  EXPECT_TRUE(open_path(directory.path("link")));
  auto link = files->stat_path(directory.path("link"), false);
  auto real = files->stat_path(directory.path("link"), true);
  ASSERT_TRUE(link.ok() && real.ok());
  EXPECT_EQ(link->type, FileType::kSymlink);
  EXPECT_EQ(real->type, FileType::kDirectory);
  auto resolved = files->resolve_path(directory.path("link/./../link"));
  auto expected = files->resolve_path(directory.path());
  ASSERT_TRUE(resolved.ok() && expected.ok());
  EXPECT_EQ(*resolved, *expected + "/real");
  EXPECT_EQ(files->resolve_path(directory.path("none")).status().code(), ErrorCode::kNotFound);
}

TEST_F(PosixFileSystem, RefusalOfTheSystemIsPermissionDenied) {
  directory.write("file", "");
  directory.make_directory("directory");
  ASSERT_EQ(::chmod(directory.path("file").c_str(), 0), 0);
  ASSERT_EQ(::chmod(directory.path("directory").c_str(), 0), 0);
  const UnprivilegedScope unprivileged;
  EXPECT_EQ(files->open_file(root, "file", OpenMode::kRead).status().code(),
            ErrorCode::kPermissionDenied);
  EXPECT_EQ(files->open_directory(root, "directory").status().code(), ErrorCode::kPermissionDenied);
}

TEST_F(PosixFileSystem, SyncingAFileADirectoryAndTheFileSystemSucceeds) {
  FileHandle file = open_file("file", OpenMode::kCreate);
  ASSERT_TRUE(files->write(file, as_bytes("x"), 0).ok());
  EXPECT_TRUE(files->sync_data(file).ok());
  EXPECT_TRUE(files->sync(file).ok());
  EXPECT_TRUE(files->sync(root).ok());
  EXPECT_TRUE(files->sync_file_system(file).ok());
}

// What df(1) shows; the file system is in use meanwhile.
TEST_F(PosixFileSystem, TheRoomIsWhatTheSystemSays) {
  auto space = files->space(root);
  ASSERT_TRUE(space.ok());
  struct statvfs truth;
  ASSERT_EQ(::statvfs(directory.path().c_str(), &truth), 0);
  EXPECT_EQ(space->bytes_total, truth.f_blocks * truth.f_frsize);
  EXPECT_EQ(space->inodes_total, truth.f_files);
  EXPECT_LE(space->block_bytes, truth.f_frsize);
  EXPECT_LE(space->bytes_available, space->bytes_total);
  EXPECT_LE(space->inodes_available, space->inodes_total);
}

TEST_F(PosixFileSystem, WhatIsReservedForRootIsNotForOthers) {
  const UnprivilegedScope unprivileged;
  auto space = files->space(root);
  ASSERT_TRUE(space.ok());
  struct statvfs truth;
  ASSERT_EQ(::statvfs(directory.path().c_str(), &truth), 0);
  const std::uint64_t reserved = (truth.f_bfree - truth.f_bavail) * truth.f_frsize;
  EXPECT_LE(space->bytes_available, space->bytes_total - reserved);
}

TEST_F(PosixFileSystem, AFileThatLeavesTheCacheIsReadFromTheDisk) {
  FileHandle file = open_file("file", OpenMode::kCreate);
  const std::string contents(1 << 20, 'c');
  ASSERT_TRUE(files->write(file, as_bytes(contents), 0).ok());
  ASSERT_TRUE(files->sync(file).ok());
  EXPECT_TRUE(files->drop_cached(file).ok());
  EXPECT_EQ(directory.read("file"), contents);
}

TEST_F(PosixFileSystem, DirectFilesSayTheirAlignment) {
  auto created = files->open_file(root, "file", OpenMode::kCreateDirect);
  if (!created.ok()) {
    EXPECT_EQ(created.status().system_errno(), EINVAL);
    EXPECT_FALSE(directory.exists("file"));
    GTEST_SKIP() << "no direct I/O in " << directory.path();
  }
  EXPECT_NE(::fcntl(created->descriptor(), F_GETFL) & O_DIRECT, 0);
  FileHandle read = open_file("file", OpenMode::kReadDirect);
  EXPECT_NE(::fcntl(read.descriptor(), F_GETFL) & O_DIRECT, 0);
  auto status = files->stat(read);
  ASSERT_TRUE(status.ok());
  const std::uint32_t alignment = status->direct_alignment;
  if (alignment == 0) GTEST_SKIP() << "no direct I/O in " << directory.path();
  EXPECT_EQ(alignment & (alignment - 1), 0u);
  void* memory = nullptr;
  ASSERT_EQ(::posix_memalign(&memory, std::max<std::size_t>(alignment, sizeof(void*)), alignment),
            0);
  const std::span bytes(static_cast<std::byte*>(memory), alignment);
  std::fill(bytes.begin(), bytes.end(), std::byte{'d'});
  EXPECT_TRUE(files->write(*created, bytes, alignment).ok());
  EXPECT_EQ(directory.read("file"), std::string(alignment, '\0') + std::string(alignment, 'd'));
  auto count = files->read(read, bytes, alignment);
  EXPECT_TRUE(count.ok() && *count == alignment);
  std::free(memory);
}

}  // namespace
}  // namespace fgsync
