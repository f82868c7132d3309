#include "io/posix_file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include "base/assert.h"
#include "fgsync/lock_holder.h"
#include "io/posix_directory_reader.h"
#include "io/posix_file_status.h"
#include "io/posix_open.h"

namespace fgsync::io {
namespace {

template <typename Call>
Status completed(std::string_view doing, Call call) {
  if (uninterrupted(call) < 0) return Status::from_errno(errno, doing);
  return Status();
}

class PosixFileSystem : public FileSystem {
 public:
  explicit PosixFileSystem(bool follows_links) : follows_links_(follows_links) {}
  Result<FileHandle> open_path(const std::string& path) override;
  Result<FileStatus> stat_path(const std::string& path, bool follow) override;
  Status make_directory_path(const std::string& path, std::uint32_t mode) override;
  Result<std::string> resolve_path(const std::string& path) override;

  Result<FileHandle> open_directory(const FileHandle& base, const std::string& name) override;
  Result<FileHandle> open_file(const FileHandle& base, const std::string& name,
                               OpenMode mode) override;
  Result<std::unique_ptr<DirectoryReader>> list(const FileHandle& directory) override;
  Result<FileStatus> stat(const FileHandle& file) override;
  Result<FileStatus> stat_at(const FileHandle& base, const std::string& name) override;
  Result<std::string> read_link(const FileHandle& base, const std::string& name) override;

  std::int64_t read_some(const FileHandle& file, std::span<std::byte> bytes,
                         std::uint64_t offset) override;
  std::int64_t write_some(const FileHandle& file, std::span<const std::byte> bytes,
                          std::uint64_t offset) override;
  Status truncate(const FileHandle& file, std::uint64_t size) override;
  Status allocate(const FileHandle& file, std::uint64_t size) override;
  Status sync_data(const FileHandle& file) override;
  Status sync(const FileHandle& file_or_directory) override;
  Status sync_file_system(const FileHandle& any) override;
  Status drop_cached(const FileHandle& file) override;
  Result<FileSystemSpace> space(const FileHandle& any) override;
  bool is_in_memory(const FileHandle& file) override { return lives_in_memory(file.descriptor()); }

  Status make_directory(const FileHandle& base, const std::string& name,
                        std::uint32_t mode) override;
  Status make_symlink(const FileHandle& base, const std::string& name,
                      const std::string& target) override;
  Status rename(const FileHandle& from_base, const std::string& from, const FileHandle& to_base,
                const std::string& to) override;
  Status exchange(const FileHandle& base, const std::string& name, const FileHandle& other_base,
                  const std::string& other) override;
  Status make_special(const FileHandle& base, const std::string& name, FileType type,
                      std::uint32_t mode) override;
  Status link(const FileHandle& from_base, const std::string& from, const FileHandle& to_base,
              const std::string& to) override;
  Status unlink(const FileHandle& base, const std::string& name) override;
  Status remove_directory(const FileHandle& base, const std::string& name) override;

  bool may_set_owner() override { return ::geteuid() == 0; }
  Status set_mode(const FileHandle& file, std::uint32_t mode) override;
  Status set_owner(const FileHandle& file, std::uint32_t uid, std::uint32_t gid) override;
  Status set_mtime(const FileHandle& file, FileTime mtime) override;
  Status set_mode_at(const FileHandle& base, const std::string& name, std::uint32_t mode) override;
  Status set_owner_at(const FileHandle& base, const std::string& name, std::uint32_t uid,
                      std::uint32_t gid) override;
  Status set_mtime_at(const FileHandle& base, const std::string& name, FileTime mtime) override;

  Result<bool> try_lock(const FileHandle& directory) override;
  std::string lock_holder(const FileHandle& directory) override {
    return fgsync::lock_holder(directory.descriptor());
  }

  void close(int descriptor) override;

 private:
  // What is there: a symlink's referent only if links are followed; -1 with errno.
  int open_name(const FileHandle& base, const std::string& name, int flags) const;
  Result<FileHandle> open_existing(const FileHandle& base, const std::string& name, int access,
                                   int direct);
  Result<FileHandle> create(const FileHandle& base, const std::string& name, int direct);

  const bool follows_links_;
};

// Paths that a user typed.

Result<FileHandle> PosixFileSystem::open_path(const std::string& path) {
  const int descriptor =
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0) return Status::from_errno(errno, "opening");
  return FileHandle(this, descriptor);
}

Result<FileStatus> PosixFileSystem::stat_path(const std::string& path, bool follow) {
  return status_of_path(AT_FDCWD, path.c_str(), follow);
}

Status PosixFileSystem::make_directory_path(const std::string& path, std::uint32_t mode) {
  return completed("creating", [&] { return ::mkdir(path.c_str(), mode); });
}

Result<std::string> PosixFileSystem::resolve_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr),
                                                             &std::free);
  if (resolved == nullptr) return Status::from_errno(errno, "resolving");
  return std::string(resolved.get());
}

// Opening and looking.

int PosixFileSystem::open_name(const FileHandle& base, const std::string& name, int flags) const {
  if (!follows_links_) return open_beneath(base.descriptor(), name, flags, 0);
  FGSYNC_ASSERT(is_single_component(name));
  return uninterrupted(
      [&] { return ::openat(base.descriptor(), name.c_str(), flags | O_CLOEXEC); });
}

Result<FileHandle> PosixFileSystem::open_directory(const FileHandle& base,
                                                   const std::string& name) {
  const int descriptor = open_name(base, name, O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return Status::from_errno(errno, "opening");
  return FileHandle(this, descriptor);
}

Result<FileHandle> PosixFileSystem::open_file(const FileHandle& base, const std::string& name,
                                              OpenMode mode) {
  const int direct = is_direct(mode) ? O_DIRECT : 0;
  if (creates(mode)) return create(base, name, direct);
  return open_existing(base, name, updates(mode) ? O_RDWR : O_RDONLY, direct);
}

// O_NONBLOCK so that opening a FIFO without a writer does not wait for one. It goes away
// afterwards: io_uring would answer EAGAIN instead of waiting for the disk where the file system
// has no asynchronous path.
Result<FileHandle> PosixFileSystem::open_existing(const FileHandle& base, const std::string& name,
                                                  int access, int direct) {
  const int descriptor = open_name(base, name, access | O_NONBLOCK | O_NOCTTY | direct);
  if (descriptor < 0) return Status::from_errno(errno, "opening");
  FileHandle file(this, descriptor);
  struct stat status;
  if (::fstat(descriptor, &status) != 0) return Status::from_errno(errno, "opening");
  if (!S_ISREG(status.st_mode)) {
    // The errno that open(2) itself gives for a socket, and for a directory opened for writing.
    return Status(ErrorCode::kIoError, "opening: not a regular file",
                  S_ISDIR(status.st_mode) ? EISDIR : ENXIO);
  }
  if (::fcntl(descriptor, F_SETFL, direct) != 0) return Status::from_errno(errno, "opening");
  return file;
}

// O_DIRECT is asked for after the creation: open(2) would leave the new name behind when it refuses
// the flag.
Result<FileHandle> PosixFileSystem::create(const FileHandle& base, const std::string& name,
                                           int direct) {
  const int descriptor = open_beneath(base.descriptor(), name, O_RDWR | O_CREAT | O_EXCL | O_NOCTTY,
                                      S_IRUSR | S_IWUSR);
  if (descriptor < 0) return Status::from_errno(errno, "creating");
  FileHandle file(this, descriptor);
  if (direct != 0 && ::fcntl(descriptor, F_SETFL, direct) != 0) {
    const int reason = errno;
    ::unlinkat(base.descriptor(), name.c_str(), 0);
    return Status::from_errno(reason, "creating");
  }
  return file;
}

Result<std::unique_ptr<DirectoryReader>> PosixFileSystem::list(const FileHandle& directory) {
  return PosixDirectoryReader::open(directory.descriptor());
}

Result<FileStatus> PosixFileSystem::stat(const FileHandle& file) {
  return status_of_descriptor(file.descriptor());
}

Result<FileStatus> PosixFileSystem::stat_at(const FileHandle& base, const std::string& name) {
  FGSYNC_ASSERT(is_single_component(name));
  return status_of_path(base.descriptor(), name.c_str(), follows_links_);
}

Result<std::string> PosixFileSystem::read_link(const FileHandle& base, const std::string& name) {
  FGSYNC_ASSERT(is_single_component(name));
  // A target has at most PATH_MAX - 1 bytes; a full buffer means that this one has more.
  std::array<char, PATH_MAX> target;
  const ssize_t bytes = ::readlinkat(base.descriptor(), name.c_str(), target.data(), target.size());
  if (bytes < 0) return Status::from_errno(errno, "reading the symlink");
  const auto length = static_cast<std::size_t>(bytes);
  if (length == target.size()) return Status::from_errno(ENAMETOOLONG, "reading the symlink");
  return std::string(target.data(), length);
}

// Contents.

std::int64_t PosixFileSystem::read_some(const FileHandle& file, std::span<std::byte> bytes,
                                        std::uint64_t offset) {
  const ssize_t count = uninterrupted([&] {
    return ::pread(file.descriptor(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  });
  return count < 0 ? -errno : count;
}

std::int64_t PosixFileSystem::write_some(const FileHandle& file, std::span<const std::byte> bytes,
                                         std::uint64_t offset) {
  const ssize_t count = uninterrupted([&] {
    return ::pwrite(file.descriptor(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  });
  return count < 0 ? -errno : count;
}

Status PosixFileSystem::truncate(const FileHandle& file, std::uint64_t size) {
  return completed("truncating",
                   [&] { return ::ftruncate(file.descriptor(), static_cast<off_t>(size)); });
}

Status PosixFileSystem::allocate(const FileHandle& file, std::uint64_t size) {
  FGSYNC_RETURN_IF_ERROR(truncate(file, size));
  if (size == 0 || lives_in_memory(file.descriptor())) return Status();
  const int result =
      uninterrupted([&] { return ::fallocate(file.descriptor(), 0, 0, static_cast<off_t>(size)); });
  if (result == 0 || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) return Status();
  return Status::from_errno(errno, "allocating");
}

// Not repeated on EINTR: after any failure the kernel may have dropped the dirty pages, and a
// second call would report success for them.
Status PosixFileSystem::sync_data(const FileHandle& file) {
  if (::fdatasync(file.descriptor()) != 0) return Status::from_errno(errno, "syncing");
  return Status();
}

Status PosixFileSystem::sync(const FileHandle& file_or_directory) {
  if (::fsync(file_or_directory.descriptor()) != 0) return Status::from_errno(errno, "syncing");
  return Status();
}

Status PosixFileSystem::sync_file_system(const FileHandle& any) {
  if (::syncfs(any.descriptor()) != 0) return Status::from_errno(errno, "syncing");
  return Status();
}

Status PosixFileSystem::drop_cached(const FileHandle& file) {
  const int error = ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  return error == 0 ? Status() : Status::from_errno(error, "dropping it from the cache");
}

Result<FileSystemSpace> PosixFileSystem::space(const FileHandle& any) {
  return space_of_descriptor(any.descriptor());
}

// Names.

Status PosixFileSystem::make_directory(const FileHandle& base, const std::string& name,
                                       std::uint32_t mode) {
  FGSYNC_ASSERT(is_single_component(name));
  return completed("creating", [&] { return ::mkdirat(base.descriptor(), name.c_str(), mode); });
}

Status PosixFileSystem::make_symlink(const FileHandle& base, const std::string& name,
                                     const std::string& target) {
  FGSYNC_ASSERT(is_single_component(name));
  return completed("creating",
                   [&] { return ::symlinkat(target.c_str(), base.descriptor(), name.c_str()); });
}

Status PosixFileSystem::rename(const FileHandle& from_base, const std::string& from,
                               const FileHandle& to_base, const std::string& to) {
  FGSYNC_ASSERT(is_single_component(from));
  FGSYNC_ASSERT(is_single_component(to));
  return completed("renaming", [&] {
    return ::renameat(from_base.descriptor(), from.c_str(), to_base.descriptor(), to.c_str());
  });
}

Status PosixFileSystem::exchange(const FileHandle& base, const std::string& name,
                                 const FileHandle& other_base, const std::string& other) {
  FGSYNC_ASSERT(is_single_component(name));
  FGSYNC_ASSERT(is_single_component(other));
  return completed("exchanging", [&] {
    return ::renameat2(base.descriptor(), name.c_str(), other_base.descriptor(), other.c_str(),
                       RENAME_EXCHANGE);
  });
}

Status PosixFileSystem::make_special(const FileHandle& base, const std::string& name, FileType type,
                                     std::uint32_t mode) {
  FGSYNC_ASSERT(is_single_component(name));
  FGSYNC_ASSERT(type == FileType::kFifo || type == FileType::kSocket);
  const mode_t kind = type == FileType::kFifo ? S_IFIFO : S_IFSOCK;
  return completed("creating",
                   [&] { return ::mknodat(base.descriptor(), name.c_str(), kind | mode, 0); });
}

Status PosixFileSystem::link(const FileHandle& from_base, const std::string& from,
                             const FileHandle& to_base, const std::string& to) {
  FGSYNC_ASSERT(is_single_component(from));
  FGSYNC_ASSERT(is_single_component(to));
  return completed("linking", [&] {
    return ::linkat(from_base.descriptor(), from.c_str(), to_base.descriptor(), to.c_str(), 0);
  });
}

Status PosixFileSystem::unlink(const FileHandle& base, const std::string& name) {
  FGSYNC_ASSERT(is_single_component(name));
  return completed("removing", [&] { return ::unlinkat(base.descriptor(), name.c_str(), 0); });
}

Status PosixFileSystem::remove_directory(const FileHandle& base, const std::string& name) {
  FGSYNC_ASSERT(is_single_component(name));
  return completed("removing",
                   [&] { return ::unlinkat(base.descriptor(), name.c_str(), AT_REMOVEDIR); });
}

// Metadata.

constexpr std::string_view kSettingMode = "setting the mode";
constexpr std::string_view kSettingOwner = "setting the owner";
constexpr std::string_view kSettingMtime = "setting the modification time";

Status PosixFileSystem::set_mode(const FileHandle& file, std::uint32_t mode) {
  return completed(kSettingMode, [&] { return ::fchmod(file.descriptor(), mode); });
}

Status PosixFileSystem::set_owner(const FileHandle& file, std::uint32_t uid, std::uint32_t gid) {
  return completed(kSettingOwner, [&] { return ::fchown(file.descriptor(), uid, gid); });
}

// Leaves the access time alone. Nanoseconds out of range are refused here, as the kernel gives two
// such values a meaning of their own.
template <typename SetTimes>
Status set_mtime_by(SetTimes set_times, FileTime mtime) {
  constexpr std::uint32_t kNanosecondsMax = 999'999'999;
  if (mtime.nanoseconds > kNanosecondsMax) return Status::from_errno(EINVAL, kSettingMtime);
  timespec times[2] = {};
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_sec = mtime.seconds;
  times[1].tv_nsec = mtime.nanoseconds;
  return completed(kSettingMtime, [&] { return set_times(times); });
}

Status PosixFileSystem::set_mtime(const FileHandle& file, FileTime mtime) {
  return set_mtime_by([&](const timespec* times) { return ::futimens(file.descriptor(), times); },
                      mtime);
}

Status PosixFileSystem::set_mode_at(const FileHandle& base, const std::string& name,
                                    std::uint32_t mode) {
  FGSYNC_ASSERT(is_single_component(name));
  return completed(kSettingMode, [&] {
    return ::fchmodat(base.descriptor(), name.c_str(), mode, AT_SYMLINK_NOFOLLOW);
  });
}

Status PosixFileSystem::set_owner_at(const FileHandle& base, const std::string& name,
                                     std::uint32_t uid, std::uint32_t gid) {
  FGSYNC_ASSERT(is_single_component(name));
  return completed(kSettingOwner, [&] {
    return ::fchownat(base.descriptor(), name.c_str(), uid, gid, AT_SYMLINK_NOFOLLOW);
  });
}

Status PosixFileSystem::set_mtime_at(const FileHandle& base, const std::string& name,
                                     FileTime mtime) {
  FGSYNC_ASSERT(is_single_component(name));
  return set_mtime_by(
      [&](const timespec* times) {
        return ::utimensat(base.descriptor(), name.c_str(), times, AT_SYMLINK_NOFOLLOW);
      },
      mtime);
}

// flock(2). On file systems that several hosts share, a directory's lock is this host's alone (or
// is none): it says nothing about another host's run.
Result<bool> PosixFileSystem::try_lock(const FileHandle& directory) {
  if (is_shared_between_hosts(directory.descriptor())) return true;
  const int result =
      uninterrupted([&] { return ::flock(directory.descriptor(), LOCK_EX | LOCK_NB); });
  if (result == 0) return true;
  switch (errno) {
    case EWOULDBLOCK:
      return false;
    case EBADF:
    case ENOSYS:
    case ENOLCK:
    case EOPNOTSUPP:
    case EINVAL:
      return true;
    default:
      return Status::from_errno(errno, "locking");
  }
}

void PosixFileSystem::close(int descriptor) { ::close(descriptor); }

}  // namespace

std::unique_ptr<FileSystem> make_posix_file_system() {
  return std::make_unique<PosixFileSystem>(/*follows_links=*/false);
}

std::unique_ptr<FileSystem> make_file_system_through_links() {
  return std::make_unique<PosixFileSystem>(/*follows_links=*/true);
}

}  // namespace fgsync::io
