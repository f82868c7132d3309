#include "transfer/file_digest.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"

namespace fgsync::transfer {
namespace {

// Buffered reads are summed piece by piece while each is still in the second-level cache.
constexpr std::size_t kPieceBytes = 256 * limits::kKiB;

// Direct I/O for what is larger than a packed file, wherever it is offered. Else the pages that the
// cache has of it, unless others use them, make way for what the disk has.
Result<std::unique_ptr<storage::SourceFile>> open_past_cache(io::FileSystem& files,
                                                             const FilePlace& place,
                                                             const io::FileHandle& directory) {
  auto opened =
      storage::SourceFile::open(files, directory, place.name, place.identity, DirectIo::kAlways);
  if (!opened.ok() && opened.status().code() == ErrorCode::kUnsupported) {
    opened =
        storage::SourceFile::open(files, directory, place.name, place.identity, DirectIo::kNever);
  }
  // Best effort: a file system that cannot is read through its cache.
  if (opened.ok() && !(*opened)->is_direct()) (void)files.drop_cached((*opened)->handle());
  return opened;
}

}  // namespace

FileDigest::FileDigest(io::FileSystem& files, FilePlace place, std::uint32_t chunk_bytes)
    : files_(files),
      place_(std::move(place)),
      chunk_bytes_(chunk_bytes),
      chunks_(std::max<std::uint64_t>(1, (size() + chunk_bytes - 1) / chunk_bytes)) {}

std::uint64_t FileDigest::chunk_length(std::uint64_t chunk) const {
  return std::min<std::uint64_t>(chunk_bytes_, size() - chunk * chunk_bytes_);
}

Result<FileDigest::SharedSource> FileDigest::open() {
  const std::lock_guard lock(mutex_);
  if (!failure_.ok()) return failure_;
  if (source_) return source_;
  auto directory = place_.directories->open(place_.directory);
  if (!directory.ok()) {
    // It was there when it was listed.
    if (directory.status().code() != ErrorCode::kNotFound) return directory.status();
    return Status(ErrorCode::kSourceChanged, directory.status().message());
  }
  auto opened = open_past_cache(files_, place_, **directory);
  if (!opened.ok()) return opened.status();
  source_ = std::move(*opened);
  return source_;
}

Result<wire::Checksum> FileDigest::read_whole(std::span<std::byte> buffer) {
  Result<SharedSource> source = open();
  if (!source.ok()) return source.status();
  FGSYNC_ASSERT(!(*source)->is_direct());
  for (std::uint64_t chunk = 0; chunk < chunks_; ++chunk) {
    wire::ChecksumStream sum;
    for (std::uint64_t done = 0; done < chunk_length(chunk);) {
      const std::size_t piece =
          std::size_t(std::min<std::uint64_t>(buffer.size(), chunk_length(chunk) - done));
      FGSYNC_RETURN_IF_ERROR((*source)->read(buffer.first(piece), chunk * chunk_bytes_ + done));
      sum.update(buffer.first(piece));
      done += piece;
    }
    const std::lock_guard lock(mutex_);
    const wire::Checksum checksum = sum.finish();
    if (chunk == 0) first_ = checksum;
    sum_.update(checksum.bytes);
  }
  const std::lock_guard lock(mutex_);
  return finish();
}

io::Task<std::optional<Result<wire::Checksum>>> FileDigest::read_share(io::Io* io, Buffer* buffer,
                                                                       Reading* reading) {
  std::optional<Result<wire::Checksum>> digest;
  while (!digest) {
    const std::optional<std::uint64_t> chunk = take_chunk(*reading);
    if (!chunk) break;
    Result<wire::Checksum> checksum = co_await sum_chunk(io, *chunk, buffer, reading);
    // The last one looks at the file once more, and closes it.
    co_await io::run_blocking(*io, [&] { digest = settle_chunk(*chunk, checksum); });
  }
  co_return digest;
}

std::optional<std::uint64_t> FileDigest::take_chunk(const Reading& reading) {
  const std::lock_guard lock(mutex_);
  if (next_chunk_ == chunks_ || reading.stop.load(std::memory_order_relaxed)) return std::nullopt;
  ++taken_;
  return next_chunk_++;
}

io::Task<Result<wire::Checksum>> FileDigest::sum_chunk(io::Io* io, std::uint64_t chunk,
                                                       Buffer* buffer, Reading* reading) {
  Result<SharedSource> source = Status(ErrorCode::kIoError, "not opened");
  co_await io::run_blocking(*io, [&] { source = open(); });
  if (!source.ok()) co_return source.status();
  wire::ChecksumStream sum;
  const std::uint64_t start = chunk * chunk_bytes_;
  const std::uint64_t length = chunk_length(chunk);
  for (std::uint64_t at = 0; at < length;) {
    const std::size_t piece = std::size_t(std::min<std::uint64_t>(buffer->capacity(), length - at));
    transport::StageTimer timer(reading->meter, Stage::kRead, piece);
    Status read = co_await read_piece(io, source->get(), start + at, piece, buffer);
    if (!read.ok()) co_return read;
    sum.update(buffer->whole().first(piece));
    at += piece;
  }
  co_return sum.finish();
}

io::Task<Status> FileDigest::read_piece(io::Io* io, const storage::SourceFile* source,
                                        std::uint64_t offset, std::size_t length, Buffer* buffer) {
  Status status;
  if (!source->is_direct()) {
    co_await io::run_blocking(
        *io, [&] { status = source->read(buffer->whole().first(length), offset); });
    co_return status;
  }
  // The tail is asked for in full blocks and ends at the end of the file.
  const std::uint64_t asked = storage::round_up(length, source->direct_alignment());
  Result<std::size_t> count =
      co_await io::read_direct(*io, source->handle(), buffer->whole().first(asked), offset);
  if (!count.ok()) co_return count.status();
  if (*count < length) {
    co_return Status(ErrorCode::kSourceChanged, "it became shorter while it was read");
  }
  co_return Status();
}

// Checksums come in any order and are summed in that of the chunks.
std::optional<Result<wire::Checksum>> FileDigest::settle_chunk(
    std::uint64_t chunk, const Result<wire::Checksum>& checksum) {
  const std::lock_guard lock(mutex_);
  --taken_;
  if (checksum.ok()) {
    waiting_.emplace(chunk, *checksum);
  } else {
    if (failure_.ok()) failure_ = checksum.status();
    next_chunk_ = chunks_;
  }
  for (auto next = waiting_.find(summed_); next != waiting_.end(); next = waiting_.find(summed_)) {
    if (summed_++ == 0) first_ = next->second;
    sum_.update(next->second.bytes);
    waiting_.erase(next);
  }
  if (next_chunk_ < chunks_ || taken_ > 0) return std::nullopt;
  return finish();
}

Result<wire::Checksum> FileDigest::finish() {
  const SharedSource source = std::move(source_);
  source_.reset();
  if (!failure_.ok()) return failure_;
  FGSYNC_RETURN_IF_ERROR(source->check_unchanged());
  return chunks_ == 1 ? first_ : sum_.finish();
}

}  // namespace fgsync::transfer
