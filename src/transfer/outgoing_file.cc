#include "transfer/outgoing_file.h"

#include "base/assert.h"

namespace fgsync::transfer {

OutgoingFile::OutgoingFile(std::uint64_t id, const SourceTree& tree, std::uint64_t directory,
                           std::string name, storage::SourceIdentity identity,
                           std::uint32_t chunk_bytes)
    : id_(id),
      tree_(tree),
      directory_(directory),
      name_(std::move(name)),
      identity_(identity),
      chunk_bytes_(chunk_bytes),
      chunks_left_((identity.size + chunk_bytes - 1) / chunk_bytes) {}

Result<std::shared_ptr<const storage::SourceFile>> OutgoingFile::open(io::FileSystem& files,
                                                                      DirectIo direct) {
  std::lock_guard lock(mutex_);
  if (source_) return source_;
  Result<storage::DirectoryReference> directory = tree_.directories->open(directory_);
  if (!directory.ok()) {
    // The directory was there when it was listed.
    if (directory.status().code() != ErrorCode::kNotFound) return directory.status();
    return Status(ErrorCode::kSourceChanged, directory.status().message(),
                  directory.status().system_errno());
  }
  Result<std::unique_ptr<storage::SourceFile>> opened =
      storage::SourceFile::open(files, **directory, name_, identity_, direct);
  if (!opened.ok()) return opened.status();
  source_ = std::shared_ptr<const storage::SourceFile>(std::move(*opened));
  return source_;
}

bool OutgoingFile::withdraw() {
  std::lock_guard lock(mutex_);
  return !std::exchange(withdrawn_, true);
}

bool OutgoingFile::is_withdrawn() const {
  std::lock_guard lock(mutex_);
  return withdrawn_;
}

bool OutgoingFile::settle_chunk(std::uint64_t offset, const wire::Checksum& checksum) {
  std::lock_guard lock(mutex_);
  FGSYNC_ASSERT(chunks_left_ > 0);
  if (checksums_.empty()) checksums_.resize((identity_.size + chunk_bytes_ - 1) / chunk_bytes_);
  checksums_[offset / chunk_bytes_] = checksum;
  return --chunks_left_ == 0;
}

Status OutgoingFile::check_and_close() {
  std::lock_guard lock(mutex_);
  if (!source_) return Status();
  Status unchanged = source_->check_unchanged();
  source_.reset();
  return unchanged;
}

void OutgoingFile::set_digest(const wire::Checksum& digest) {
  std::lock_guard lock(mutex_);
  packed_digest_ = digest;
}

std::optional<wire::Checksum> OutgoingFile::digest() const {
  std::lock_guard lock(mutex_);
  if (packed_digest_) return packed_digest_;
  if (checksums_.empty() || chunks_left_ > 0) return std::nullopt;
  return wire::file_digest(checksums_);
}

}  // namespace fgsync::transfer
