#include "transfer/send_worker.h"

#include <algorithm>

#include "base/assert.h"
#include "base/limits.h"
#include "base/mark.h"
#include "wire/frame.h"

namespace fgsync::transfer {
namespace {

// Buffered reads are summed piece by piece while each is still in the second-level cache.
constexpr std::size_t kPieceBytes = 256 * limits::kKiB;

static_assert(wire::kFrameHeaderBytes == transport::kFrameHeaderBytes);

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

io::Task<void> SendWorker::run_stream(std::size_t index) {
  DataStream& data = session_.streams[index];
  io::TaskGroup lanes;
  for (int lane = 0; lane < kLanesPerStream; ++lane) lanes.spawn(*data.io, run_lane(&data));
  co_await lanes.join(*data.io);
  if (session_.failed()) co_return;
  Status sent = co_await data.stream->send(
      wire::encode(wire::FrameHeader{.type = wire::FrameType::kStreamEnd}), Buffer());
  if (!sent.ok()) session_.stream_lost(sent.with_context(session_.peer()));
}

io::Task<void> SendWorker::run_lane(DataStream* data) {
  while (true) {
    std::optional<WorkItem> item = co_await scheduler_.next(*data->io);
    if (!item) break;
    const bool is_chunk = item->file != nullptr;
    io::Task<Status> sending =
        is_chunk ? send_chunk(data, std::move(*item)) : send_pack(data, std::move(*item));
    Status sent = co_await sending;
    if (!sent.ok()) {
      session_.stream_lost(sent.with_context(session_.peer()));
      break;
    }
  }
}

io::Task<Status> SendWorker::send_chunk(DataStream* data, WorkItem item) {
  wire::Checksum checksum;
  Status status;
  if (!item.file->is_withdrawn()) {
    Buffer buffer = co_await io::AcquireBuffer(*session_.pool, *data->io);
    Result<wire::Checksum> read = co_await read_chunk(data->io, &item, &buffer);
    if (read.ok()) {
      checksum = *read;
      const wire::Checksum bound = wire::bind_checksum(checksum, item.file->id(), item.offset);
      std::copy(bound.bytes.begin(), bound.bytes.end(), buffer.data() + item.length);
      buffer.resize(item.length + wire::kChunkTrailerBytes);
      co_await limiter_.acquire(*data->io, item.length);
      status = co_await data->stream->send(
          wire::encode(wire::FrameHeader{
              .type = wire::FrameType::kChunk, .entry = item.file->id(), .offset = item.offset}),
          std::move(buffer));
      if (status.ok()) bytes_sent_.fetch_add(item.length, std::memory_order_relaxed);
    } else {
      withdraw(*item.file, read.status());
    }
  }
  if (status.ok()) co_await settle_chunk(data->io, &item, &checksum);
  co_return status;
}

io::Task<Result<wire::Checksum>> SendWorker::read_chunk(io::Io* io, const WorkItem* item,
                                                        Buffer* buffer) {
  std::shared_ptr<const storage::SourceFile> source;
  Result<wire::Checksum> result = Status(ErrorCode::kIoError, "not read");
  co_await io::run_blocking(*io, [&] {
    auto opened = item->file->open(session_.files(), session_.parameters.direct_io);
    if (!opened.ok()) {
      result = opened.status();
      return;
    }
    source = std::move(*opened);
    if (!source->is_direct()) result = read_buffered(*source, *item, *buffer);
  });
  if (!source || !source->is_direct()) co_return result;

  // Past the page cache, the tail is asked for in full blocks and ends at the end of the file.
  const std::uint64_t asked = round_up(item->length, source->direct_alignment());
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
  const bool last = item->file->settle_chunk(item->offset, *checksum);
  if (!last) co_return;
  co_await io::run_blocking(*io, [&] {
    Status unchanged = item->file->check_and_close();
    if (!unchanged.ok()) withdraw(*item->file, unchanged);
  });
  wire::FileEnd end;
  end.entry = item->file->id();
  end.complete = !item->file->is_withdrawn();
  if (end.complete) end.digest = *item->file->digest();
  session_.push(end);
}

io::Task<Status> SendWorker::send_pack(DataStream* data, WorkItem item) {
  Buffer buffer = co_await io::AcquireBuffer(*session_.pool, *data->io);
  std::size_t content_bytes = 0;
  co_await io::run_blocking(*data->io, [&] { content_bytes = fill_pack(item, buffer); });
  co_await limiter_.acquire(*data->io, content_bytes);
  Status sent = co_await data->stream->send(
      wire::encode(wire::FrameHeader{.type = wire::FrameType::kPack,
                                     .count = std::uint32_t(item.pack.size())}),
      std::move(buffer));
  if (sent.ok()) bytes_sent_.fetch_add(content_bytes, std::memory_order_relaxed);
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
  Result<wire::Checksum> read = read_small(file, bytes);
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
