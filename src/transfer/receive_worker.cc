#include "transfer/receive_worker.h"

#include <algorithm>
#include <cstring>

#include "base/limits.h"
#include "base/mark.h"
#include "transfer/planner.h"
#include "transfer/staging_place.h"

namespace fgsync::transfer {
namespace {

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

Status protocol_error(const char* what) { return Status(ErrorCode::kProtocolError, what); }

}  // namespace

io::Task<void> ReceiveWorker::run_stream(std::size_t index) {
  DataStream& data = session_.streams[index];
  io::TaskGroup writing;
  co_await receive_frames(&data, &writing);
  co_await writing.join(*data.io);
}

io::Task<void> ReceiveWorker::receive_frames(DataStream* data, io::TaskGroup* writing) {
  while (true) {
    co_await finishing_.wait_open(*data->io);
    Result<transport::ReceivedFrame> frame = co_await data->stream->receive();
    if (!frame.ok()) {
      session_.stream_lost(frame.status().with_context(session_.peer()));
      co_return;
    }
    Result<wire::FrameHeader> header = wire::decode_frame_header(frame->header);
    if (!header.ok()) {
      session_.fail(header.status().with_context(session_.peer()));
      co_return;
    }
    if (header->type == wire::FrameType::kStreamEnd) co_return;
    if (header->type == wire::FrameType::kChunk) {
      writing->spawn(*data->io, take_chunk(data->io, *header, std::move(frame->payload)));
    } else {
      writing->spawn(*data->io, take_pack(data->io, *header, std::move(frame->payload)));
    }
  }
}

io::Task<void> ReceiveWorker::take_chunk(io::Io* io, wire::FrameHeader header, Buffer payload) {
  Result<std::shared_ptr<IncomingFile>> claimed = claim_chunk(header, payload.size());
  if (!claimed.ok()) {
    session_.fail(claimed.status().with_context(session_.peer()));
    co_return;
  }
  std::shared_ptr<IncomingFile> file = *claimed;
  if (!file) {  // given up already: late chunks of it are dropped
    mark("receive_late_chunk_dropped");
    co_return;
  }
  Status written = co_await write_chunk(io, file.get(), &header, &payload);
  payload.release();
  if (!written.ok()) {
    co_await io::run_blocking(*io, [&] { give_up(*file, written); });
    co_return;
  }
  {
    std::lock_guard lock(file->mutex);
    --file->chunks_left;
  }
  Status finished = co_await finish_if_complete(io, file);
  if (!finished.ok()) session_.fail(finished);
}

Result<std::shared_ptr<IncomingFile>> ReceiveWorker::claim_chunk(const wire::FrameHeader& header,
                                                                 std::size_t payload_bytes) {
  std::shared_ptr<IncomingFile> file = incoming_.find(header.entry);
  if (!file) return protocol_error("a chunk of a file that was not asked for");
  const std::uint64_t chunk_bytes = session_.parameters.chunk_bytes;
  const std::uint64_t size = file->entry.size;
  if (size <= session_.parameters.packed_file_bytes_max()) {
    return protocol_error("a chunk of a file that travels in a pack");
  }
  if (header.offset % chunk_bytes != 0 || header.offset >= size ||
      payload_bytes != std::min(chunk_bytes, size - header.offset) + wire::kChunkTrailerBytes) {
    return protocol_error("a chunk that is not one of its file's");
  }
  std::lock_guard lock(file->mutex);
  if (file->failed) return std::shared_ptr<IncomingFile>();
  if (file->claimed.empty()) {
    const std::uint64_t chunks = (size + chunk_bytes - 1) / chunk_bytes;
    file->claimed.resize(chunks);
    file->checksums.resize(chunks);
    file->chunks_left = chunks;
  }
  const std::uint64_t index = header.offset / chunk_bytes;
  if (file->claimed[index]) return protocol_error("a chunk that came twice");
  file->claimed[index] = true;
  return file;
}

Result<wire::Checksum> ReceiveWorker::verify_chunk(const wire::FrameHeader& header,
                                                   std::span<const std::byte> payload) {
  Result<wire::ChunkPayload> chunk = wire::decode_chunk_payload(payload);
  if (!chunk.ok()) return chunk.status();
  transport::StageTimer verifying(session_.meter(), Stage::kVerify, chunk->bytes.size());
  const wire::Checksum checksum = wire::checksum_of(chunk->bytes);
  if (wire::bind_checksum(checksum, header.entry, header.offset) == chunk->bound_checksum) {
    return checksum;
  }
  mark("receive_chunk_mismatch");
  return Status(ErrorCode::kChecksumMismatch, "verifying: a chunk differs from its checksum");
}

io::Task<Status> ReceiveWorker::write_chunk(io::Io* io, IncomingFile* file,
                                            const wire::FrameHeader* header, Buffer* payload) {
  const std::size_t length = payload->size() - wire::kChunkTrailerBytes;
  Status status;
  std::shared_ptr<storage::StagedFile> staged;
  co_await io::run_blocking(*io, [&] {
    Result<wire::Checksum> checksum = verify_chunk(*header, payload->bytes());
    status = checksum.ok() ? open_staged(*file) : checksum.status();
    if (!status.ok()) return;
    {
      std::lock_guard lock(file->mutex);
      if (file->failed) return;
      file->checksums[header->offset / session_.parameters.chunk_bytes] = *checksum;
      staged = file->staged;
    }
  });
  // `staged` is null if another chunk's failure has given the file up meanwhile.
  if (status.ok() && staged) {
    io::Task<Status> writing = staged->direct_alignment() != 0
                                   ? write_past_cache(io, staged.get(), header->offset, payload)
                                   : write_through_cache(io, file, staged.get(), header->offset,
                                                         payload->bytes().first(length));
    status = co_await writing;
  }
  if (status.ok()) bytes_written_.fetch_add(length, std::memory_order_relaxed);
  co_return status;
}

// Buffered writes to one file are serialised by the kernel, on a lock that waiters spin for: with
// four of them at once the write stage was busy three times as long for the same bytes. So here
// they wait as coroutines, and different files are written side by side.
io::Task<Status> ReceiveWorker::write_through_cache(io::Io* io, IncomingFile* file,
                                                    storage::StagedFile* staged,
                                                    std::uint64_t offset,
                                                    std::span<const std::byte> bytes) {
  const io::AsyncMutex::Guard turn = co_await file->writing.lock(*io);
  Status status;
  co_await io::run_blocking(*io, [&] {
    transport::StageTimer writing(session_.meter(), Stage::kWrite, bytes.size());
    status = staged->write(bytes, offset);
  });
  co_return status;
}

// The tail of the file is written in full blocks, padded with zeros; finish() cuts it to size.
io::Task<Status> ReceiveWorker::write_past_cache(io::Io* io, storage::StagedFile* staged,
                                                 std::uint64_t offset, Buffer* payload) {
  const std::size_t length = payload->size() - wire::kChunkTrailerBytes;
  const std::size_t padded = round_up(length, staged->direct_alignment());
  std::memset(payload->data() + length, 0, padded - length);
  transport::StageTimer writing(session_.meter(), Stage::kWrite, length);
  Status status =
      co_await io::write_direct(*io, staged->handle(), payload->whole().first(padded), offset);
  co_return status;
}

Status ReceiveWorker::open_staged(IncomingFile& file) {
  std::lock_guard lock(file.mutex);
  if (file.staged || file.failed) return Status();
  StagingPlace place;
  auto staged = stage(file.entry, session_.parameters.direct_io, place);
  if (!staged.ok()) return staged.status();
  file.staged = std::shared_ptr<storage::StagedFile>(std::move(*staged));
  return Status();
}

Result<std::unique_ptr<storage::StagedFile>> ReceiveWorker::stage(const wire::ManifestEntry& entry,
                                                                  DirectIo direct,
                                                                  StagingPlace& place) {
  transport::StageTimer writing(session_.meter(), Stage::kWrite, 0);
  if (!place.staging || place.parent != entry.parent) {
    auto directory = directories_.open(entry.parent);
    if (!directory.ok()) return directory.status();
    auto staging = staging_for(session_.files(), directories_, staging_, *directory);
    if (!staging.ok()) return staging.status();
    place = {entry.parent, *staging};
  }
  return storage::StagedFile::create(session_.files(), place.staging, staging_.next_name(),
                                     entry.size, direct);
}

io::Task<Status> ReceiveWorker::on_file_end(io::Io* io, wire::FileEnd end) {
  std::shared_ptr<IncomingFile> file = incoming_.find(end.entry);
  if (!file) co_return protocol_error("the end of a file that was not asked for");
  std::shared_ptr<storage::StagedFile> withdrawn;
  {
    std::lock_guard lock(file->mutex);
    if (file->failed) co_return Status();
    if (file->end) co_return protocol_error("the end of a file that has ended before");
    if (file->entry.size <= session_.parameters.packed_file_bytes_max()) {
      co_return protocol_error("the end of a file that travels in a pack");
    }
    file->end = end;
    file->failed = !end.complete;
    if (!end.complete) {
      withdrawn = std::move(file->staged);
      file->forget();
    }
  }
  if (!end.complete) {
    mark("receive_file_withdrawn");
    co_await io::run_blocking(*io, [&] { withdrawn.reset(); });
    committer_.settle_failed(*file);
    co_return Status();
  }
  Status finished = co_await finish_if_complete(io, file);
  co_return finished;
}

io::Task<Status> ReceiveWorker::finish_if_complete(io::Io* io, std::shared_ptr<IncomingFile> file) {
  bool complete = false;
  {
    std::lock_guard lock(file->mutex);
    complete = file->end && file->staged && file->chunks_left == 0 && !file->failed;
  }
  // Whoever takes it out of the table finishes it.
  if (!complete || !incoming_.take(file->entry.id)) co_return Status();
  Status finished;
  finishing_.add(1);
  co_await io::run_blocking(*io, [&] { finished = finish_file(file); });
  finishing_.remove(1);
  co_return finished;
}

Status ReceiveWorker::finish_file(const std::shared_ptr<IncomingFile>& file) {
  const wire::Checksum digest = wire::file_digest(file->checksums);
  if (digest != file->end->digest) {
    return Status(ErrorCode::kProtocolError,
                  committer_.display_path(file->entry) + ": verifying: the file's digest differs");
  }
  std::shared_ptr<storage::StagedFile> staged;
  {
    // Whoever else saw the file complete may still be looking at it.
    std::lock_guard lock(file->mutex);
    staged = std::move(file->staged);
  }
  Status finished = staged->finish(metadata_of(file->entry));
  if (!finished.ok()) {
    mark("receive_metadata_failed");
    committer_.fail(*file, finished);
    return Status();
  }
  committer_.add_one({file, std::move(staged), digest});
  return Status();
}

void ReceiveWorker::give_up(IncomingFile& file, const Status& status) {
  if (status.code() == ErrorCode::kChecksumMismatch || status.code() == ErrorCode::kProtocolError) {
    session_.fail(status.with_context(committer_.display_path(file.entry)));
    return;
  }
  {
    std::lock_guard lock(file.mutex);
    if (std::exchange(file.failed, true)) return;
    mark("receive_file_given_up");
    file.forget();
  }
  committer_.fail(file, status);
}

io::Task<void> ReceiveWorker::take_pack(io::Io* io, wire::FrameHeader header, Buffer payload) {
  Status status;
  std::vector<StagedEntry> staged;
  co_await io::run_blocking(*io, [&] { status = unpack(header, payload.bytes(), staged); });
  payload.release();  // not needed for what may be a long flush
  if (!status.ok()) session_.fail(status.with_context(session_.peer()));
  if (!status.ok() || staged.empty()) co_return;
  co_await io::run_blocking(*io, [&] { committer_.add(std::move(staged)); });
}

Status ReceiveWorker::unpack(const wire::FrameHeader& header, std::span<const std::byte> payload,
                             std::vector<StagedEntry>& staged) {
  wire::PackReader reader(payload, header.count);
  StagingPlace place;
  while (true) {
    Result<std::optional<wire::PackedEntry>> packed = reader.next();
    if (!packed.ok()) return packed.status();
    if (!packed->has_value()) break;
    const wire::PackedEntry& entry = **packed;
    std::shared_ptr<IncomingFile> file = incoming_.take(entry.entry);
    if (!file || file->entry.size > session_.parameters.packed_file_bytes_max()) {
      return protocol_error("a packed file that was not asked for");
    }
    if (entry.status == wire::PackedStatus::kWithdrawn) {
      mark("receive_packed_withdrawn");
      committer_.settle_failed(*file);
      continue;
    }
    if (entry.bytes.size() != file->entry.size) {
      return protocol_error("a packed file that has another size than announced");
    }
    Result<StagedEntry> written = write_packed(file, entry, place);
    if (written.ok()) {
      staged.push_back(std::move(*written));
    } else if (written.status().code() == ErrorCode::kChecksumMismatch) {
      return written.status().with_context(committer_.display_path(file->entry));
    } else {
      committer_.fail(*file, written.status());
    }
    if (session_.failed()) return Status();
  }
  return Status();
}

Result<StagedEntry> ReceiveWorker::write_packed(const std::shared_ptr<IncomingFile>& file,
                                                const wire::PackedEntry& packed,
                                                StagingPlace& place) {
  {
    transport::StageTimer verifying(session_.meter(), Stage::kVerify, packed.bytes.size());
    if (wire::checksum_of(packed.bytes) != packed.checksum) {
      mark("receive_packed_mismatch");
      return Status(ErrorCode::kChecksumMismatch, "verifying: it differs from its checksum");
    }
  }
  auto created = stage(file->entry, DirectIo::kNever, place);
  if (!created.ok()) return created.status();
  std::shared_ptr<storage::StagedFile> staged = std::move(*created);
  transport::StageTimer writing(session_.meter(), Stage::kWrite, packed.bytes.size());
  FGSYNC_RETURN_IF_ERROR(staged->write(packed.bytes, 0));
  FGSYNC_RETURN_IF_ERROR(staged->finish(metadata_of(file->entry)));
  staged->close();
  bytes_written_.fetch_add(packed.bytes.size(), std::memory_order_relaxed);
  return StagedEntry{file, std::move(staged), packed.checksum};
}

}  // namespace fgsync::transfer
