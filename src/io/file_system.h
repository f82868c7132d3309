// The file half of the I/O seam: every file operation that blocks. Code above it runs these inside
// a blocking job (`co_await run_blocking(io, ...)`) and never calls the kernel by itself, so that a
// simulated file system can take this one's place. Everything is relative to a held directory
// handle; only `open_path`, for a path that the user typed on this host, takes more than one
// component. No call follows a symlink in `name`.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fgsync/status.h"

namespace fgsync::io {

struct FileTime {
  std::int64_t seconds = 0;       // since 1970, may be negative
  std::uint32_t nanoseconds = 0;  // 0..999'999'999
  auto operator<=>(const FileTime&) const = default;
};

enum class FileType : std::uint8_t {
  kRegular,
  kDirectory,
  kSymlink,
  kFifo,
  kSocket,
  kBlockDevice,
  kCharacterDevice,
  kUnknown,
};

struct FileStatus {
  FileType type = FileType::kUnknown;
  std::uint32_t mode = 0;  // permission bits with setuid, setgid, sticky: 07777
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t size = 0;
  std::uint64_t links = 0;
  FileTime mtime;
  FileTime ctime;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t mount =
      0;  // tells mounts apart, bind mounts too where the kernel says so; else the device
  // What direct I/O asks of offsets, lengths and memory; 0 where it is not offered. Only by
  // stat(FileHandle).
  std::uint32_t direct_alignment = 0;
};

// Room on a file system, for what this process may use. A total of 0: it does not say.
struct FileSystemSpace {
  std::uint64_t bytes_total = 0;
  std::uint64_t bytes_available = 0;
  std::uint64_t block_bytes = 1;  // files take whole ones
  std::uint64_t inodes_total = 0;
  std::uint64_t inodes_available = 0;
};

class FileSystem;

// An open file or directory: move-only; closed when it goes away. Use from several threads at once
// is fine for operations with explicit offsets and for directories held as a base.
class FileHandle {
 public:
  FileHandle() = default;
  FileHandle(FileSystem* files, int descriptor) : files_(files), descriptor_(descriptor) {}
  FileHandle(FileHandle&& other) noexcept
      : files_(std::exchange(other.files_, nullptr)),
        descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    if (this != &other) {
      reset();
      files_ = std::exchange(other.files_, nullptr);
      descriptor_ = std::exchange(other.descriptor_, -1);
    }
    return *this;
  }
  ~FileHandle() { reset(); }
  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  inline void reset();

 private:
  FileSystem* files_ = nullptr;
  int descriptor_ = -1;
};

struct DirectoryEntry {
  std::string name;
  FileType type = FileType::kUnknown;  // a hint; kUnknown where the file system does not say
};

// A directory being listed; "." and ".." are left out. Not thread-safe.
class DirectoryReader {
 public:
  virtual ~DirectoryReader() = default;
  // Appends up to about `count` names and returns true, or returns false at the end.
  virtual Result<bool> next(std::size_t count, std::vector<DirectoryEntry>& entries) = 0;
};

enum class OpenMode : std::uint8_t {
  kRead,          // a regular file; never blocks on a FIFO
  kReadDirect,    // the same past the page cache
  kCreate,        // new, must not exist, read and write, mode 0600
  kCreateDirect,  // the same past the page cache
  kUpdate,        // a regular file that exists, read and write; never blocks on a FIFO
  kUpdateDirect,  // the same past the page cache
};

constexpr bool creates(OpenMode mode) {
  return mode == OpenMode::kCreate || mode == OpenMode::kCreateDirect;
}
constexpr bool updates(OpenMode mode) {
  return mode == OpenMode::kUpdate || mode == OpenMode::kUpdateDirect;
}
constexpr bool is_direct(OpenMode mode) {
  return mode == OpenMode::kReadDirect || mode == OpenMode::kCreateDirect ||
         mode == OpenMode::kUpdateDirect;
}

// What every `name` below must be: one component that stays in its directory. Giving another one to
// a FileSystem is a programmer's error; a name that came from outside is checked with this first.
inline bool is_single_component(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // A directory named by this host's user: absolute or relative to the working directory; symlinks
  // are followed.
  virtual Result<FileHandle> open_path(const std::string& path) = 0;
  // The status of what a typed path names; a symlink in the last component is followed only if
  // asked.
  virtual Result<FileStatus> stat_path(const std::string& path, bool follow) = 0;
  virtual Status make_directory_path(const std::string& path, std::uint32_t mode) = 0;
  // The absolute path without symlinks, "." and "..".
  virtual Result<std::string> resolve_path(const std::string& path) = 0;

  virtual Result<FileHandle> open_directory(const FileHandle& base, const std::string& name) = 0;
  virtual Result<FileHandle> open_file(const FileHandle& base, const std::string& name,
                                       OpenMode mode) = 0;
  virtual Result<std::unique_ptr<DirectoryReader>> list(const FileHandle& directory) = 0;
  virtual Result<FileStatus> stat(const FileHandle& file) = 0;
  virtual Result<FileStatus> stat_at(const FileHandle& base, const std::string& name) = 0;
  virtual Result<std::string> read_link(const FileHandle& base, const std::string& name) = 0;

  // Bytes read or written at `offset`: fewer than asked only at the end of the file (read) or never
  // (write).
  Result<std::size_t> read(const FileHandle& file, std::span<std::byte> bytes,
                           std::uint64_t offset);
  Status write(const FileHandle& file, std::span<const std::byte> bytes, std::uint64_t offset);
  // One call for these two, which may end with less than asked for: a count, 0 at the end of the
  // file, or a negated errno.
  virtual std::int64_t read_some(const FileHandle& file, std::span<std::byte> bytes,
                                 std::uint64_t offset) = 0;
  virtual std::int64_t write_some(const FileHandle& file, std::span<const std::byte> bytes,
                                  std::uint64_t offset) = 0;
  virtual Status truncate(const FileHandle& file, std::uint64_t size) = 0;
  // Reserves room for `size` bytes and sets the size. Where the file system cannot reserve
  // (EOPNOTSUPP) or gains nothing by it (tmpfs: allocates and zeroes, measured at half of the
  // receiver's time), only sets the size.
  virtual Status allocate(const FileHandle& file, std::uint64_t size) = 0;
  virtual Status sync_data(const FileHandle& file) = 0;          // fdatasync
  virtual Status sync(const FileHandle& file_or_directory) = 0;  // fsync
  virtual Status sync_file_system(const FileHandle& any) = 0;    // syncfs
  // What of the file does not wait to be written leaves the page cache: the next read is from the
  // disk.
  virtual Status drop_cached(const FileHandle& file) = 0;
  virtual Result<FileSystemSpace> space(const FileHandle& any) = 0;
  // Whether the file lives in memory only (tmpfs, ramfs), so that reading and writing it does not
  // block.
  virtual bool is_in_memory(const FileHandle& file) = 0;

  virtual Status make_directory(const FileHandle& base, const std::string& name,
                                std::uint32_t mode) = 0;
  virtual Status make_symlink(const FileHandle& base, const std::string& name,
                              const std::string& target) = 0;
  virtual Status rename(const FileHandle& from_base, const std::string& from,
                        const FileHandle& to_base, const std::string& to) = 0;
  // Both names stand for what the other one stood for, at once (RENAME_EXCHANGE). EINVAL or ENOSYS
  // where the file system cannot do that.
  virtual Status exchange(const FileHandle& base, const std::string& name,
                          const FileHandle& other_base, const std::string& other) = 0;
  // A FIFO or a socket's name: what any user may make.
  virtual Status make_special(const FileHandle& base, const std::string& name, FileType type,
                              std::uint32_t mode) = 0;
  // One more name for a file that is no directory (a hard link).
  virtual Status link(const FileHandle& from_base, const std::string& from,
                      const FileHandle& to_base, const std::string& to) = 0;
  virtual Status unlink(const FileHandle& base, const std::string& name) = 0;
  virtual Status remove_directory(const FileHandle& base, const std::string& name) = 0;

  // Whether this process may give files away; others keep their own owner, and that is no error.
  virtual bool may_set_owner() = 0;
  // Root was refused an owner nevertheless: a user namespace without that id, or a server that
  // squashes root. The file keeps its own owner; the run says so once.
  void owner_was_refused() { owner_refused_.store(true, std::memory_order_relaxed); }
  bool has_refused_owners() const { return owner_refused_.load(std::memory_order_relaxed); }
  virtual Status set_mode(const FileHandle& file, std::uint32_t mode) = 0;
  virtual Status set_owner(const FileHandle& file, std::uint32_t uid, std::uint32_t gid) = 0;
  virtual Status set_mtime(const FileHandle& file, FileTime mtime) = 0;
  // The same for a name below a directory, without following a symlink there (mode: not for
  // symlinks).
  virtual Status set_mode_at(const FileHandle& base, const std::string& name,
                             std::uint32_t mode) = 0;
  virtual Status set_owner_at(const FileHandle& base, const std::string& name, std::uint32_t uid,
                              std::uint32_t gid) = 0;
  virtual Status set_mtime_at(const FileHandle& base, const std::string& name, FileTime mtime) = 0;

  // Takes the lock that marks a directory as in use by a living process; false when another one
  // holds it. The kernel drops it when the holder dies. True as well where the file system has no
  // locks.
  virtual Result<bool> try_lock(const FileHandle& directory) = 0;
  // Who holds it, to be told to users: see fgsync/lock_holder.h.
  virtual std::string lock_holder(const FileHandle& directory) = 0;

  virtual void close(int descriptor) = 0;

 private:
  std::atomic<bool> owner_refused_{false};
};

inline void FileHandle::reset() {
  if (descriptor_ >= 0) files_->close(std::exchange(descriptor_, -1));
}

}  // namespace fgsync::io
