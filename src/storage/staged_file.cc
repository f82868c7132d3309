#include "storage/staged_file.h"

#include <utility>

#include "base/assert.h"
#include "base/limits.h"

namespace fgsync::storage {

Result<std::unique_ptr<StagedFile>> StagedFile::create(io::FileSystem& files,
                                                       DirectoryReference staging, std::string name,
                                                       std::uint64_t size, DirectIo direct) {
  auto opened = open_for(files, *staging, name, OpenPurpose::kCreate, size, direct);
  if (!opened.ok()) return opened.status();
  // From here on its destructor removes the name.
  std::unique_ptr<StagedFile> file(
      new StagedFile(files, std::move(staging), std::move(name), std::move(*opened), size));
  // A small file is written in one piece, for which delayed allocation finds room as well.
  if (size > limits::kPackedFileBytesMax) {
    FGSYNC_RETURN_IF_ERROR(files.allocate(file->handle_, size));
  }
  return file;
}

Result<std::unique_ptr<StagedFile>> StagedFile::reopen(io::FileSystem& files,
                                                       DirectoryReference staging, std::string name,
                                                       std::uint64_t size, DirectIo direct) {
  auto opened = open_for(files, *staging, name, OpenPurpose::kUpdate, size, direct);
  if (!opened.ok()) return opened.status();
  auto status = files.stat(opened->handle);
  if (!status.ok()) return status.status();
  // It may be longer: a direct write of the tail is rounded up, and finish() has not been there.
  if (status->size < size) return Status(ErrorCode::kIoError, "it is too short");
  return std::unique_ptr<StagedFile>(
      new StagedFile(files, std::move(staging), std::move(name), std::move(*opened), size));
}

Result<std::unique_ptr<StagedFile>> StagedFile::create_symlink(io::FileSystem& files,
                                                               DirectoryReference staging,
                                                               std::string name,
                                                               const std::string& target,
                                                               const Metadata& metadata) {
  FGSYNC_RETURN_IF_ERROR(files.make_symlink(*staging, name, target));
  std::unique_ptr<StagedFile> link(
      new StagedFile(files, std::move(staging), std::move(name), OpenedFile(), 0));
  FGSYNC_RETURN_IF_ERROR(apply_symlink_metadata(files, *link->staging_, link->name_, metadata));
  return link;
}

StagedFile::~StagedFile() {
  // Nobody is left to tell; StagingArea::clean() comes after this one and does report.
  if (!published_ && !kept_) (void)files_.unlink(*staging_, name_);
}

Status StagedFile::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  FGSYNC_ASSERT(direct_alignment_ == 0);
  return files_.write(handle_, bytes, offset);
}

Status StagedFile::finish(const Metadata& metadata) {
  auto status = files_.stat(handle_);
  if (!status.ok()) return status.status();
  if (status->size != size_) FGSYNC_RETURN_IF_ERROR(files_.truncate(handle_, size_));
  return apply_metadata(files_, handle_, metadata);
}

Status StagedFile::sync_data() {
  const std::lock_guard lock(sync_mutex_);
  if (!handle_) return Status();
  if (sync_failure_.ok()) sync_failure_ = files_.sync_data(handle_);
  return sync_failure_;
}

Status StagedFile::sync() {
  const std::lock_guard lock(sync_mutex_);
  if (sync_failure_.ok()) sync_failure_ = files_.sync(handle_);
  return sync_failure_;
}

void StagedFile::close() {
  const std::lock_guard lock(sync_mutex_);
  handle_.reset();
}

// A handle for direct I/O takes whole blocks alone, and the file may end within one.
Status StagedFile::open_for_reading() {
  if (!handle_ || direct_alignment_ != 0) {
    auto opened = files_.open_file(*staging_, name_, io::OpenMode::kRead);
    if (!opened.ok()) return opened.status();
    const std::lock_guard lock(sync_mutex_);
    handle_ = std::move(*opened);
  }
  return files_.drop_cached(handle_);
}

Status StagedFile::publish(const io::FileHandle& directory, const std::string& name) {
  FGSYNC_ASSERT(!published_);
  FGSYNC_RETURN_IF_ERROR(files_.rename(*staging_, name_, directory, name));
  published_ = true;
  return Status();
}

}  // namespace fgsync::storage
