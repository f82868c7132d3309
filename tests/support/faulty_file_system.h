// A file system that passes everything on to another one, writes down what was asked for, and fails
// where a test wants it to.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "io/file_system.h"

namespace fgsync::testing {

enum class FileOperation : std::uint8_t {
  kOpenPath,
  kStatPath,
  kMakeDirectoryPath,
  kResolvePath,
  kOpenDirectory,
  kOpenFile,
  kList,
  kStat,
  kStatAt,
  kReadLink,
  kRead,
  kWrite,
  kTruncate,
  kAllocate,
  kSync,
  kSyncFileSystem,
  kDropCached,
  kSpace,
  kMakeDirectory,
  kMakeSymlink,
  kRename,
  kExchange,
  kMakeSpecial,
  kLink,
  kUnlink,
  kRemoveDirectory,
  kSetMode,
  kSetOwner,
  kSetMtime,
  kTryLock,
};

struct RecordedOperation {
  FileOperation operation;
  std::string name;  // what it was about, where it has a name; a rename's final one
};

// Thread-safe. Closing is not an operation: it cannot fail.
class FaultyFileSystem final : public io::FileSystem {
 public:
  explicit FaultyFileSystem(std::unique_ptr<io::FileSystem> inner) : inner_(std::move(inner)) {}

  // From then on the `nth` (1 is the next) operation of this kind fails, and with `lasting` all
  // behind it as well.
  void fail(FileOperation operation, std::uint64_t nth, int system_errno, bool lasting = false);
  // From then on the `nth` operation that changes anything fails, and whatever is asked for behind
  // it: nothing of what a process does that was killed there comes to the disk.
  void die_at(std::uint64_t nth);
  // How many such operations there have been.
  std::uint64_t changes() const;
  // From then on the `nth` write takes only half of what it is given, and with `lasting` all behind
  // it as well.
  void shorten_writes(std::uint64_t nth, bool lasting = false);
  // Only operations about this name count for fail(). Empty: all.
  void only_about(std::string name);
  // Whoever runs the test, it says that it may give files away (and is refused, if need be).
  void claim_to_set_owners() { claims_to_set_owners_ = true; }
  // As a file system without locks, or one whose locks other hosts do not see: each is granted.
  void grant_every_lock() { grants_every_lock_ = true; }
  // What space() says from now on.
  void pretend_space(io::FileSystemSpace space);
  // Called before each operation, on the thread that asks for it.
  void on_operation(std::function<void(const RecordedOperation&)> look) { look_ = std::move(look); }
  // How many operations have been touched by fail() or shorten_writes().
  std::uint64_t failures() const;
  std::vector<RecordedOperation> recorded() const;
  std::size_t count(FileOperation operation) const;
  void forget();

  Result<io::FileHandle> open_path(const std::string& path) override;
  Result<io::FileStatus> stat_path(const std::string& path, bool follow) override;
  Status make_directory_path(const std::string& path, std::uint32_t mode) override;
  Result<std::string> resolve_path(const std::string& path) override;
  Result<io::FileHandle> open_directory(const io::FileHandle& base,
                                        const std::string& name) override;
  Result<io::FileHandle> open_file(const io::FileHandle& base, const std::string& name,
                                   io::OpenMode mode) override;
  Result<std::unique_ptr<io::DirectoryReader>> list(const io::FileHandle& directory) override;
  Result<io::FileStatus> stat(const io::FileHandle& file) override;
  Result<io::FileStatus> stat_at(const io::FileHandle& base, const std::string& name) override;
  Result<std::string> read_link(const io::FileHandle& base, const std::string& name) override;
  std::int64_t read_some(const io::FileHandle& file, std::span<std::byte> bytes,
                         std::uint64_t offset) override;
  std::int64_t write_some(const io::FileHandle& file, std::span<const std::byte> bytes,
                          std::uint64_t offset) override;
  Status truncate(const io::FileHandle& file, std::uint64_t size) override;
  Status allocate(const io::FileHandle& file, std::uint64_t size) override;
  Status sync_data(const io::FileHandle& file) override;
  Status sync(const io::FileHandle& file) override;
  Status sync_file_system(const io::FileHandle& any) override;
  Status drop_cached(const io::FileHandle& file) override;
  Result<io::FileSystemSpace> space(const io::FileHandle& any) override;
  bool is_in_memory(const io::FileHandle& file) override { return inner_->is_in_memory(file); }
  Status make_directory(const io::FileHandle& base, const std::string& name,
                        std::uint32_t mode) override;
  Status make_symlink(const io::FileHandle& base, const std::string& name,
                      const std::string& target) override;
  Status rename(const io::FileHandle& from_base, const std::string& from,
                const io::FileHandle& to_base, const std::string& to) override;
  Status exchange(const io::FileHandle& base, const std::string& name,
                  const io::FileHandle& other_base, const std::string& other) override;
  Status make_special(const io::FileHandle& base, const std::string& name, io::FileType type,
                      std::uint32_t mode) override;
  Status link(const io::FileHandle& from_base, const std::string& from,
              const io::FileHandle& to_base, const std::string& to) override;
  Status unlink(const io::FileHandle& base, const std::string& name) override;
  Status remove_directory(const io::FileHandle& base, const std::string& name) override;
  bool may_set_owner() override { return claims_to_set_owners_ || inner_->may_set_owner(); }
  Status set_mode(const io::FileHandle& file, std::uint32_t mode) override;
  Status set_owner(const io::FileHandle& file, std::uint32_t uid, std::uint32_t gid) override;
  Status set_mtime(const io::FileHandle& file, io::FileTime mtime) override;
  Status set_mode_at(const io::FileHandle& base, const std::string& name,
                     std::uint32_t mode) override;
  Status set_owner_at(const io::FileHandle& base, const std::string& name, std::uint32_t uid,
                      std::uint32_t gid) override;
  Status set_mtime_at(const io::FileHandle& base, const std::string& name,
                      io::FileTime mtime) override;
  Result<bool> try_lock(const io::FileHandle& directory) override;
  std::string lock_holder(const io::FileHandle& directory) override {
    return inner_->lock_holder(directory);
  }
  void close(int descriptor) override { inner_->close(descriptor); }

 private:
  struct Fault {
    FileOperation operation;
    std::uint64_t left;
    int system_errno;
    bool lasting;
  };
  Status begin(FileOperation operation, const std::string& name = {});
  std::size_t bytes_to_write(std::size_t bytes);

  const std::unique_ptr<io::FileSystem> inner_;
  std::function<void(const RecordedOperation&)> look_;  // these three constant while it is used
  bool claims_to_set_owners_ = false;
  bool grants_every_lock_ = false;
  mutable std::mutex mutex_;
  std::vector<RecordedOperation> recorded_;   // guarded by mutex_
  std::vector<Fault> faults_;                 // guarded by mutex_
  std::uint64_t changes_ = 0;                 // guarded by mutex_
  std::uint64_t dies_at_ = 0;                 // guarded by mutex_; 0: never
  std::optional<Fault> short_writes_;         // guarded by mutex_
  std::string only_about_;                    // guarded by mutex_
  std::uint64_t failures_ = 0;                // guarded by mutex_
  std::optional<io::FileSystemSpace> space_;  // guarded by mutex_
};

}  // namespace fgsync::testing
