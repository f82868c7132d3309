#include "transfer/send_worker.h"

#include <algorithm>

#include "base/assert.h"
#include "base/limits.h"
#include "base/mark.h"
#include "storage/direct_io.h"
#include "wire/frame.h"

namespace fgsync::transfer {
namespace {

// Buffered reads are summed piece by piece while each is still in the second-level cache.
constexpr std::size_t kPieceBytes = 256 * limits::kKiB;

static_assert(wire::kFrameHeaderBytes == transport::kFrameHeaderBytes);

}  // namespace

SendWorker::SendWorker(Session& session, ChunkScheduler& scheduler, RateLimiter& limiter,
                       StreamRecovery& recovery)
    : session_(session), limiter_(limiter) {
  for (std::size_t i = 0; i < session.streams.size(); ++i) {
    streams_.emplace_back(session, i, scheduler, recovery);
  }
}

io::Task<void> SendWorker::run_stream(std::size_t index) {
  OutgoingStream& stream = streams_[index];
  for (bool more = true; more;) {
    io::TaskGroup lanes;
    for (int lane = 0; lane < kLanesPerStream; ++lane) lanes.spawn(stream.io(), run_lane(&stream));
    co_await lanes.join(stream.io());
    more = co_await stream.finish_connection();
  }
}

Status SendWorker::on_frames(const std::vector<std::uint64_t>& frames) {
  if (frames.size() > streams_.size()) {
    return Status(ErrorCode::kProtocolError, "counted frames of more streams than there are");
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    FGSYNC_RETURN_IF_ERROR(streams_[i].on_frames(frames[i]));
  }
  return Status();
}

Status SendWorker::on_stream_ended(const wire::StreamEnded& ended) {
  if (ended.stream >= streams_.size()) {
    return Status(ErrorCode::kProtocolError, "the end of a stream that is none");
  }
  return streams_[ended.stream].on_ended(ended);
}

void SendWorker::stop() {
  for (OutgoingStream& stream : streams_) stream.stop();
}

io::Task<void> SendWorker::run_lane(OutgoingStream* stream) {
  while (true) {
    std::optional<WorkItem> item = co_await stream->next();
    if (!item) break;
    if (item->file != nullptr && item->length == 0) {
      co_await end_held(&stream->io(), item->file.get());
      stream->skip();
      continue;
    }
    const bool is_chunk = item->file != nullptr;
    io::Task<Status> sending =
        is_chunk ? send_chunk(stream, std::move(*item)) : send_pack(stream, std::move(*item));
    Status sent = co_await sending;
    if (!sent.ok()) break;
  }
}

io::Task<Status> SendWorker::send_chunk(OutgoingStream* stream, WorkItem item) {
  io::Io& io = stream->io();
  wire::Checksum checksum;
  bool sent = false;
  if (!item.file->is_withdrawn()) {
    Buffer buffer = co_await io::AcquireBuffer(*session_.pool, io);
    Result<wire::Checksum> read = co_await fill_chunk(&io, &item, &buffer);
    if (read.ok()) {
      checksum = *read;
      co_await limiter_.acquire(io, item.length);
      const wire::FrameHeader header{
          .type = wire::FrameType::kChunk, .entry = item.file->id(), .offset = item.offset};
      Status status = co_await stream->send(header, item, std::move(buffer));
      if (!status.ok()) co_return status;
      if (!item.again) bytes_sent_.fetch_add(item.length, std::memory_order_relaxed);
      sent = true;
    } else {
      withdraw(*item.file, read.status());
    }
  }
  if (!sent) stream->skip();
  co_await settle_chunk(&io, &item, &checksum);
  co_return Status();
}

io::Task<Result<wire::Checksum>> SendWorker::fill_chunk(io::Io* io, const WorkItem* item,
                                                        Buffer* buffer) {
  Result<wire::Checksum> read = co_await read_chunk(io, item, buffer);
  if (!read.ok()) co_return read;
  if (item->again && !item->file->is_same(item->offset, *read)) {
    mark("send_changed_before_again");
    co_return Status(ErrorCode::kSourceChanged, "reading it again: it has changed");
  }
  const wire::Checksum bound = wire::bind_checksum(*read, item->file->id(), item->offset);
  std::copy(bound.bytes.begin(), bound.bytes.end(), buffer->data() + item->length);
  buffer->resize(item->length + wire::kChunkTrailerBytes);
  co_return read;
}

io::Task<Result<wire::Checksum>> SendWorker::read_chunk(io::Io* io, const WorkItem* item,
                                                        Buffer* buffer) {
  Result<std::shared_ptr<const storage::SourceFile>> opened = item->file->opened();
  if (!*opened) {
    co_await io::run_blocking(
        *io, [&] { opened = item->file->open(session_.files(), session_.parameters.direct_io); });
    FGSYNC_CO_RETURN_IF_ERROR(opened.status());
  }
  const storage::SourceFile* const source = opened->get();
  if (!source->is_direct()) {
    Result<wire::Checksum> checksum = Status(ErrorCode::kIoError, "not read");
    co_await io::run_job(*io, source->may_block(),
                         [&] { checksum = read_buffered(*source, *item, *buffer); });
    co_return checksum;
  }

  // Past the page cache, the tail is asked for in full blocks and ends at the end of the file.
  const std::uint64_t asked = storage::round_up(item->length, source->direct_alignment());
  transport::StageTimer reading(session_.meter(), Stage::kRead, item->length);
  Result<std::size_t> count =
      co_await io::read_direct(*io, source->handle(), buffer->whole().first(asked), item->offset);
  reading.stop();
  if (!count.ok()) co_return count.status();
  if (*count < item->length) {
    mark("send_direct_read_short");
    co_return Status(ErrorCode::kSourceChanged, "reading: the file has become shorter");
  }
  transport::StageTimer hashing(session_.meter(), Stage::kHash, item->length);
  co_return wire::checksum_of(buffer->whole().first(item->length));
}

Result<wire::Checksum> SendWorker::read_buffered(const storage::SourceFile& source,
                                                 const WorkItem& item, Buffer& buffer) {
  wire::ChecksumStream checksum;
  for (std::size_t done = 0; done < item.length;) {
    const std::size_t piece = std::min<std::size_t>(kPieceBytes, item.length - done);
    const std::span<std::byte> bytes = buffer.whole().subspan(done, piece);
    {
      transport::StageTimer reading(session_.meter(), Stage::kRead, piece);
      FGSYNC_RETURN_IF_ERROR(source.read(bytes, item.offset + done));
    }
    transport::StageTimer hashing(session_.meter(), Stage::kHash, piece);
    checksum.update(bytes);
    done += piece;
  }
  return checksum.finish();
}

void SendWorker::withdraw(OutgoingFile& file, const Status& status) {
  mark("send_withdrawn");
  if (file.withdraw()) (void)session_.path_failed(file.display_path(), status);
}

io::Task<void> SendWorker::settle_chunk(io::Io* io, const WorkItem* item,
                                        const wire::Checksum* checksum) {
  const bool last = item->again ? item->file->settle_chunk_again()
                                : item->file->settle_chunk(item->offset, *checksum);
  if (last) co_await tell_end(io, item->file.get());
}

// Nothing of it must be read, but it must still be what it was.
io::Task<void> SendWorker::end_held(io::Io* io, OutgoingFile* file) {
  mark("send_held_whole");
  co_await io::run_blocking(*io, [&] {
    auto opened = file->open(session_.files(), DirectIo::kNever);
    if (!opened.ok()) withdraw(*file, opened.status());
  });
  co_await tell_end(io, file);
}

io::Task<void> SendWorker::tell_end(io::Io* io, OutgoingFile* file) {
  co_await io::run_blocking(*io, [&] {
    Status unchanged = file->check_and_close();
    if (!unchanged.ok()) withdraw(*file, unchanged);
  });
  const std::optional<wire::FileEnd> end = file->last_word();
  if (end) session_.push(*end);
}

io::Task<Status> SendWorker::send_pack(OutgoingStream* stream, WorkItem item) {
  io::Io& io = stream->io();
  Buffer buffer = co_await io::AcquireBuffer(*session_.pool, io);
  std::size_t content_bytes = 0;
  co_await io::run_blocking(io, [&] { content_bytes = fill_pack(item, buffer); });
  co_await limiter_.acquire(io, content_bytes);
  const bool again = item.again;
  const wire::FrameHeader header{.type = wire::FrameType::kPack,
                                 .count = std::uint32_t(item.pack.size())};
  Status sent = co_await stream->send(header, std::move(item), std::move(buffer));
  if (sent.ok() && !again) bytes_sent_.fetch_add(content_bytes, std::memory_order_relaxed);
  co_return sent;
}

std::size_t SendWorker::fill_pack(const WorkItem& item, Buffer& buffer) {
  std::size_t used = 0;
  std::size_t content_bytes = 0;
  for (const std::shared_ptr<OutgoingFile>& file : item.pack) {
    const std::size_t written = pack_file(*file, buffer.whole().subspan(used));
    used += written;
    content_bytes += written - wire::kPackedHeaderBytes;
  }
  buffer.resize(used);
  return content_bytes;
}

std::size_t SendWorker::pack_file(OutgoingFile& file, std::span<std::byte> room) {
  FGSYNC_ASSERT(room.size() >= wire::kPackedHeaderBytes + file.size());
  const std::span<std::byte> bytes = room.subspan(wire::kPackedHeaderBytes, file.size());
  Result<wire::Checksum> read = Status(ErrorCode::kSourceChanged, "withdrawn");
  // Withdrawn stays withdrawn when its pack is sent again.
  if (!file.is_withdrawn()) read = read_small(file, bytes);
  wire::PackedEntry packed;
  packed.entry = file.id();
  if (read.ok()) {
    packed.checksum = *read;
    packed.bytes = bytes;
    file.set_digest(*read);
  } else {
    packed.status = wire::PackedStatus::kWithdrawn;
    (void)file.check_and_close();
    withdraw(file, read.status());
  }
  wire::encode_packed_header(packed, room);
  return wire::kPackedHeaderBytes + packed.bytes.size();
}

Result<wire::Checksum> SendWorker::read_small(OutgoingFile& file, std::span<std::byte> bytes) {
  {
    transport::StageTimer reading(session_.meter(), Stage::kRead, bytes.size());
    // Small files go through the page cache whatever was asked for large ones: a direct read of a
    // file of a few blocks costs a wait for the disk and saves no cache to speak of.
    auto source = file.open(session_.files(), DirectIo::kNever);
    if (!source.ok()) return source.status();
    FGSYNC_RETURN_IF_ERROR((*source)->read(bytes, 0));
    FGSYNC_RETURN_IF_ERROR(file.check_and_close());
  }
  transport::StageTimer hashing(session_.meter(), Stage::kHash, bytes.size());
  return wire::checksum_of(bytes);
}

}  // namespace fgsync::transfer
