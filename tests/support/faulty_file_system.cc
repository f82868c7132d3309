#include "support/faulty_file_system.h"

#include <algorithm>
#include <cerrno>

namespace fgsync::testing {
namespace {

bool is_change(FileOperation operation) {
  switch (operation) {
    case FileOperation::kMakeDirectoryPath:
    case FileOperation::kWrite:
    case FileOperation::kTruncate:
    case FileOperation::kMakeDirectory:
    case FileOperation::kMakeSymlink:
    case FileOperation::kRename:
    case FileOperation::kExchange:
    case FileOperation::kMakeSpecial:
    case FileOperation::kLink:
    case FileOperation::kUnlink:
    case FileOperation::kRemoveDirectory:
    case FileOperation::kSetMode:
    case FileOperation::kSetMtime:
      return true;
    default:
      return false;
  }
}

}  // namespace

void FaultyFileSystem::fail(FileOperation operation, std::uint64_t nth, int system_errno,
                            bool lasting) {
  std::lock_guard lock(mutex_);
  faults_.push_back({operation, nth, system_errno, lasting});
}

void FaultyFileSystem::die_at(std::uint64_t nth) {
  std::lock_guard lock(mutex_);
  dies_at_ = changes_ + nth;
}

std::uint64_t FaultyFileSystem::changes() const {
  std::lock_guard lock(mutex_);
  return changes_;
}

void FaultyFileSystem::shorten_writes(std::uint64_t nth, bool lasting) {
  std::lock_guard lock(mutex_);
  short_writes_ = Fault{FileOperation::kWrite, nth, 0, lasting};
}

void FaultyFileSystem::only_about(std::string name) {
  std::lock_guard lock(mutex_);
  only_about_ = std::move(name);
}

void FaultyFileSystem::pretend_space(io::FileSystemSpace space) {
  std::lock_guard lock(mutex_);
  space_ = space;
}

std::uint64_t FaultyFileSystem::failures() const {
  std::lock_guard lock(mutex_);
  return failures_;
}

std::vector<RecordedOperation> FaultyFileSystem::recorded() const {
  std::lock_guard lock(mutex_);
  return recorded_;
}

std::size_t FaultyFileSystem::count(FileOperation operation) const {
  std::lock_guard lock(mutex_);
  return std::size_t(std::count_if(recorded_.begin(), recorded_.end(), [&](const auto& recorded) {
    return recorded.operation == operation;
  }));
}

void FaultyFileSystem::forget() {
  std::lock_guard lock(mutex_);
  recorded_.clear();
}

Status FaultyFileSystem::begin(FileOperation operation, const std::string& name) {
  if (look_) look_({operation, name});
  std::lock_guard lock(mutex_);
  recorded_.push_back({operation, name});
  if (is_change(operation)) ++changes_;
  if (dies_at_ > 0 && changes_ >= dies_at_) {
    ++failures_;
    return Status::from_errno(EIO, "what a dead process asks for");
  }
  if (!only_about_.empty() && name != only_about_) return Status();
  for (Fault& fault : faults_) {
    if (fault.operation != operation || fault.left == 0) continue;
    if (fault.left > 1) {
      --fault.left;
      continue;
    }
    if (!fault.lasting) fault.left = 0;
    ++failures_;
    return Status::from_errno(fault.system_errno, "a fault that the test wants");
  }
  return Status();
}

Result<io::FileHandle> FaultyFileSystem::open_path(const std::string& path) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kOpenPath, path));
  return inner_->open_path(path);
}

Result<io::FileStatus> FaultyFileSystem::stat_path(const std::string& path, bool follow) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kStatPath, path));
  return inner_->stat_path(path, follow);
}

Status FaultyFileSystem::make_directory_path(const std::string& path, std::uint32_t mode) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kMakeDirectoryPath, path));
  return inner_->make_directory_path(path, mode);
}

Result<std::string> FaultyFileSystem::resolve_path(const std::string& path) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kResolvePath, path));
  return inner_->resolve_path(path);
}

Result<io::FileHandle> FaultyFileSystem::open_directory(const io::FileHandle& base,
                                                        const std::string& name) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kOpenDirectory, name));
  return inner_->open_directory(base, name);
}

Result<io::FileHandle> FaultyFileSystem::open_file(const io::FileHandle& base,
                                                   const std::string& name, io::OpenMode mode) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kOpenFile, name));
  return inner_->open_file(base, name, mode);
}

Result<std::unique_ptr<io::DirectoryReader>> FaultyFileSystem::list(
    const io::FileHandle& directory) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kList));
  return inner_->list(directory);
}

Result<io::FileStatus> FaultyFileSystem::stat(const io::FileHandle& file) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kStat));
  return inner_->stat(file);
}

Result<io::FileStatus> FaultyFileSystem::stat_at(const io::FileHandle& base,
                                                 const std::string& name) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kStatAt, name));
  return inner_->stat_at(base, name);
}

Result<std::string> FaultyFileSystem::read_link(const io::FileHandle& base,
                                                const std::string& name) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kReadLink, name));
  return inner_->read_link(base, name);
}

std::int64_t FaultyFileSystem::read_some(const io::FileHandle& file, std::span<std::byte> bytes,
                                         std::uint64_t offset) {
  const Status begun = begin(FileOperation::kRead);
  return begun.ok() ? inner_->read_some(file, bytes, offset) : -begun.system_errno();
}

std::int64_t FaultyFileSystem::write_some(const io::FileHandle& file,
                                          std::span<const std::byte> bytes, std::uint64_t offset) {
  const Status begun = begin(FileOperation::kWrite);
  if (!begun.ok()) return -begun.system_errno();
  return inner_->write_some(file, bytes.first(bytes_to_write(bytes.size())), offset);
}

std::size_t FaultyFileSystem::bytes_to_write(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  if (!short_writes_ || short_writes_->left == 0) return bytes;
  if (short_writes_->left > 1) {
    --short_writes_->left;
    return bytes;
  }
  if (!short_writes_->lasting) short_writes_->left = 0;
  ++failures_;
  return (bytes + 1) / 2;
}

Status FaultyFileSystem::truncate(const io::FileHandle& file, std::uint64_t size) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kTruncate));
  return inner_->truncate(file, size);
}

Status FaultyFileSystem::allocate(const io::FileHandle& file, std::uint64_t size) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kAllocate));
  return inner_->allocate(file, size);
}

Status FaultyFileSystem::sync_data(const io::FileHandle& file) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kSync));
  return inner_->sync_data(file);
}

Status FaultyFileSystem::sync(const io::FileHandle& file) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kSync));
  return inner_->sync(file);
}

Status FaultyFileSystem::sync_file_system(const io::FileHandle& any) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kSyncFileSystem));
  return inner_->sync_file_system(any);
}

Status FaultyFileSystem::drop_cached(const io::FileHandle& file) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kDropCached));
  return inner_->drop_cached(file);
}

Result<io::FileSystemSpace> FaultyFileSystem::space(const io::FileHandle& any) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kSpace));
  std::lock_guard lock(mutex_);
  return space_ ? *space_ : inner_->space(any);
}

Status FaultyFileSystem::make_directory(const io::FileHandle& base, const std::string& name,
                                        std::uint32_t mode) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kMakeDirectory, name));
  return inner_->make_directory(base, name, mode);
}

Status FaultyFileSystem::make_symlink(const io::FileHandle& base, const std::string& name,
                                      const std::string& target) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kMakeSymlink, name));
  return inner_->make_symlink(base, name, target);
}

Status FaultyFileSystem::rename(const io::FileHandle& from_base, const std::string& from,
                                const io::FileHandle& to_base, const std::string& to) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kRename, to));
  return inner_->rename(from_base, from, to_base, to);
}

Status FaultyFileSystem::exchange(const io::FileHandle& base, const std::string& name,
                                  const io::FileHandle& other_base, const std::string& other) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kExchange, other));
  return inner_->exchange(base, name, other_base, other);
}

Status FaultyFileSystem::make_special(const io::FileHandle& base, const std::string& name,
                                      io::FileType type, std::uint32_t mode) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kMakeSpecial, name));
  return inner_->make_special(base, name, type, mode);
}

Status FaultyFileSystem::link(const io::FileHandle& from_base, const std::string& from,
                              const io::FileHandle& to_base, const std::string& to) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kLink, to));
  return inner_->link(from_base, from, to_base, to);
}

Status FaultyFileSystem::unlink(const io::FileHandle& base, const std::string& name) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kUnlink, name));
  return inner_->unlink(base, name);
}

Status FaultyFileSystem::remove_directory(const io::FileHandle& base, const std::string& name) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kRemoveDirectory, name));
  return inner_->remove_directory(base, name);
}

Status FaultyFileSystem::set_mode(const io::FileHandle& file, std::uint32_t mode) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kSetMode));
  return inner_->set_mode(file, mode);
}

Status FaultyFileSystem::set_owner(const io::FileHandle& file, std::uint32_t uid,
                                   std::uint32_t gid) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kSetOwner));
  return inner_->set_owner(file, uid, gid);
}

Status FaultyFileSystem::set_mtime(const io::FileHandle& file, io::FileTime mtime) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kSetMtime));
  return inner_->set_mtime(file, mtime);
}

Status FaultyFileSystem::set_mode_at(const io::FileHandle& base, const std::string& name,
                                     std::uint32_t mode) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kSetMode, name));
  return inner_->set_mode_at(base, name, mode);
}

Status FaultyFileSystem::set_owner_at(const io::FileHandle& base, const std::string& name,
                                      std::uint32_t uid, std::uint32_t gid) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kSetOwner, name));
  return inner_->set_owner_at(base, name, uid, gid);
}

Status FaultyFileSystem::set_mtime_at(const io::FileHandle& base, const std::string& name,
                                      io::FileTime mtime) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kSetMtime, name));
  return inner_->set_mtime_at(base, name, mtime);
}

Result<bool> FaultyFileSystem::try_lock(const io::FileHandle& directory) {
  FGSYNC_RETURN_IF_ERROR(begin(FileOperation::kTryLock));
  if (grants_every_lock_) return true;
  return inner_->try_lock(directory);
}

}  // namespace fgsync::testing
