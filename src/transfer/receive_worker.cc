#include "transfer/receive_worker.h"

#include <algorithm>
#include <cstring>

#include "base/limits.h"
#include "base/mark.h"
#include "storage/direct_io.h"
#include "transfer/planner.h"
#include "transfer/staging_place.h"

namespace fgsync::transfer {
namespace {

Status protocol_error(const char* what) { return Status(ErrorCode::kProtocolError, what); }

}  // namespace

ReceiveWorker::ReceiveWorker(Session& session, storage::DirectoryTree& directories,
                             storage::StagingArea& staging, IncomingTable& incoming,
                             ChunkJournal& journal, Committer& committer, StreamRecovery& recovery)
    : session_(session),
      directories_(directories),
      staging_(staging),
      incoming_(incoming),
      journal_(journal),
      committer_(committer) {
  for (std::size_t i = 0; i < session.streams.size(); ++i) {
    streams_.emplace_back(session, i, recovery);
  }
}

std::vector<std::uint64_t> ReceiveWorker::frames() const {
  std::vector<std::uint64_t> frames;
  for (const IncomingStream& stream : streams_) frames.push_back(stream.frames());
  return frames;
}

Status ReceiveWorker::on_stream_ended(const wire::StreamEnded& ended) {
  if (ended.stream >= streams_.size()) return protocol_error("the end of a stream that is none");
  return streams_[ended.stream].on_ended(ended);
}

io::Task<void> ReceiveWorker::run_stream(std::size_t index) {
  IncomingStream& stream = streams_[index];
  io::TaskGroup writing;
  co_await receive_frames(&stream, &writing);
  co_await writing.join(stream.io());
}

io::Task<void> ReceiveWorker::receive_frames(IncomingStream* stream, io::TaskGroup* writing) {
  io::Io& io = stream->io();
  while (true) {
    co_await finishing_.wait_open(io);
    Result<transport::ReceivedFrame> frame = co_await stream->receive();
    if (!frame.ok()) co_return;
    Result<wire::FrameHeader> header = wire::decode_frame_header(frame->header);
    if (!header.ok()) {
      session_.fail(header.status().with_context(session_.peer()));
      co_return;
    }
    if (header->type == wire::FrameType::kStreamEnd) {
      stream->finish();
      co_return;
    }
    if (header->type == wire::FrameType::kChunk) {
      writing->spawn(io, take_chunk(&io, *header, std::move(frame->payload)));
    } else {
      writing->spawn(io, take_pack(&io, *header, std::move(frame->payload)));
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
  const std::size_t length = payload.size() - wire::kChunkTrailerBytes;
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
  journal_.written(file, header.offset / session_.parameters.chunk_bytes, length);
  if (journal_.wants_commit()) co_await io::run_blocking(*io, [this] { commit_journal(); });
  Status finished = co_await finish_if_complete(io, file);
  if (!finished.ok()) session_.fail(finished);
}

void ReceiveWorker::commit_journal() {
  for (auto& [file, status] : journal_.commit(staging_)) {
    mark("journal_data_sync_failed");
    give_up(*file, status);
  }
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
  Result<wire::Checksum> checksum = verify_chunk(*header, payload->bytes());
  if (!checksum.ok()) co_return checksum.status();
  const std::uint64_t index = header->offset / session_.parameters.chunk_bytes;
  std::shared_ptr<storage::StagedFile> staged = note_checksum(*file, index, *checksum);
  Status status;
  if (!staged) {
    co_await io::run_blocking(*io, [&] { status = open_staged(*file); });
    staged = note_checksum(*file, index, *checksum);
  }
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
  co_await io::run_job(*io, staged->may_block(), [&] {
    transport::StageTimer writing(session_.meter(), Stage::kWrite, bytes.size());
    status = staged->write(bytes, offset);
  });
  co_return status;
}

// The tail of the file is written in full blocks, padded with zeros; finish() cuts it to size.
io::Task<Status> ReceiveWorker::write_past_cache(io::Io* io, storage::StagedFile* staged,
                                                 std::uint64_t offset, Buffer* payload) {
  const std::size_t length = payload->size() - wire::kChunkTrailerBytes;
  const std::size_t padded = storage::round_up(length, staged->direct_alignment());
  std::memset(payload->data() + length, 0, padded - length);
  transport::StageTimer writing(session_.meter(), Stage::kWrite, length);
  const auto blocks = payload->whole().first(padded);
  Status status = co_await io::write_direct(*io, staged->handle(), blocks, offset);
  co_return status;
}

std::shared_ptr<storage::StagedFile> ReceiveWorker::note_checksum(IncomingFile& file,
                                                                  std::uint64_t index,
                                                                  const wire::Checksum& checksum) {
  std::lock_guard lock(file.mutex);
  if (file.failed) return nullptr;
  file.checksums[index] = checksum;
  return file.staged;
}

Status ReceiveWorker::open_staged(IncomingFile& file) {
  std::lock_guard lock(file.mutex);
  if (file.staged || file.failed) return Status();
  file.room.written();
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
    // A chunk that had to be sent again may not be to be had any more.
    const bool withdraws = file->end && !end.complete && !file->finishing;
    if (file->end && !withdraws) {
      co_return protocol_error("the end of a file that has ended before");
    }
    if (withdraws) mark("receive_withdrawn_after_its_end");
    if (file->entry.size <= session_.parameters.packed_file_bytes_max()) {
      co_return protocol_error("the end of a file that travels in a pack");
    }
    file->end = end;
    file->failed = !end.complete;
    if (!end.complete) {
      withdrawn = std::move(file->staged);
      if (withdrawn) journal_.settled(*file, *withdrawn);
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
    complete =
        file->end && file->staged && file->chunks_left == 0 && !file->failed && !file->finishing;
    file->finishing |= complete;
  }
  if (!complete) co_return Status();
  (void)incoming_.take(file->entry.id);
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
  StagedEntry entry{file, std::move(staged), digest};
  Status finished = entry.staged->finish(metadata_of(file->entry));
  if (finished.ok()) finished = committer_.seal(entry);
  journal_.settled(*file, *entry.staged);
  if (!finished.ok()) {
    mark("receive_file_unfinished");
    committer_.fail(*file, finished);
    return Status();
  }
  std::vector<StagedEntry> one;
  one.push_back(std::move(entry));
  committer_.add(std::move(one));
  return Status();
}

void ReceiveWorker::give_up(IncomingFile& file, const Status& status) {
  if (status.code() == ErrorCode::kChecksumMismatch || status.code() == ErrorCode::kProtocolError) {
    session_.fail(status.with_context(committer_.display_path(file.entry)));
    return;
  }
  {
    std::lock_guard lock(file.mutex);
    // One that is being finished meets the same trouble there.
    if (file.finishing || std::exchange(file.failed, true)) return;
    mark("receive_file_given_up");
    if (file.staged) journal_.settled(file, *file.staged);
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
  file->room.written();
  auto created = stage(file->entry, DirectIo::kNever, place);
  if (!created.ok()) return created.status();
  std::shared_ptr<storage::StagedFile> staged = std::move(*created);
  transport::StageTimer writing(session_.meter(), Stage::kWrite, packed.bytes.size());
  FGSYNC_RETURN_IF_ERROR(staged->write(packed.bytes, 0));
  FGSYNC_RETURN_IF_ERROR(staged->finish(metadata_of(file->entry)));
  writing.stop();
  StagedEntry entry{file, std::move(staged), packed.checksum};
  FGSYNC_RETURN_IF_ERROR(committer_.seal(entry));
  bytes_written_.fetch_add(packed.bytes.size(), std::memory_order_relaxed);
  return entry;
}

}  // namespace fgsync::transfer
