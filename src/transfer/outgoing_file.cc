#include "transfer/outgoing_file.h"

#include <algorithm>

#include "base/assert.h"

namespace fgsync::transfer {

OutgoingFile::OutgoingFile(std::uint64_t id, const SourceTree& tree, std::uint64_t directory,
                           std::string name, storage::SourceIdentity identity,
                           std::uint32_t chunk_bytes, const std::vector<wire::HeldChunks>& held)
    : id_(id),
      tree_(tree),
      directory_(directory),
      name_(std::move(name)),
      identity_(identity),
      chunk_bytes_(chunk_bytes),
      chunks_left_((identity.size + chunk_bytes - 1) / chunk_bytes) {
  if (held.empty()) return;
  held_.resize(chunks_left_);
  checksums_.resize(chunks_left_);
  for (const wire::HeldChunks& run : held) {
    for (std::size_t i = 0; i < run.checksums.size(); ++i) {
      const std::uint64_t chunk = run.first_chunk + i;
      FGSYNC_ASSERT(chunk < held_.size() && !held_[chunk]);
      held_[chunk] = true;
      checksums_[chunk] = run.checksums[i];
      held_bytes_ += std::min<std::uint64_t>(chunk_bytes_, identity_.size - chunk * chunk_bytes_);
      --chunks_left_;
    }
  }
}

std::uint64_t OutgoingFile::next_missing(std::uint64_t offset) const {
  while (offset < size() && !held_.empty() && held_[offset / chunk_bytes_]) offset += chunk_bytes_;
  return std::min(offset, size());
}

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

std::shared_ptr<const storage::SourceFile> OutgoingFile::opened() const {
  std::lock_guard lock(mutex_);
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

bool OutgoingFile::settle_chunk_again() const {
  std::lock_guard lock(mutex_);
  return chunks_left_ == 0;
}

bool OutgoingFile::is_same(std::uint64_t offset, const wire::Checksum& checksum) const {
  std::lock_guard lock(mutex_);
  return checksums_[offset / chunk_bytes_] == checksum;
}

std::optional<wire::FileEnd> OutgoingFile::last_word() {
  std::lock_guard lock(mutex_);
  bool& told = withdrawn_ ? told_withdrawn_ : told_digest_;
  if (chunks_left_ > 0 || std::exchange(told, true)) return std::nullopt;
  wire::FileEnd end;
  end.entry = id_;
  end.complete = !withdrawn_;
  if (end.complete) end.digest = wire::file_digest(checksums_);
  return end;
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
