// The sender's data road: lanes. Each stream has several; a lane takes the next piece of work,
// reads it into a buffer, checksums it and sends it. While one lane's frame is on the wire the next
// lane reads, and the buffer pool alone bounds how far they run ahead.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>

#include "transfer/outgoing_stream.h"
#include "transfer/rate_limiter.h"
#include "transfer/session.h"

namespace fgsync::transfer {

// Lanes of one stream: one sends while one reads.
inline constexpr int kLanesPerStream = 2;

class SendWorker {
 public:
  SendWorker(Session& session, ChunkScheduler& scheduler, RateLimiter& limiter,
             StreamRecovery& recovery);

  // Works on stream number `index`, on its worker, until the receiver has all that went over it;
  // or, when its connection is lost, until nothing is left to be sent.
  io::Task<void> run_stream(std::size_t index);

  // What the receiver says of the streams. kProtocolError if it can't be. Any thread.
  Status on_frames(const std::vector<std::uint64_t>& frames);
  Status on_stream_ended(const wire::StreamEnded& ended);
  // The session has failed: nobody waits for the receiver any more. Any thread.
  void stop();

  // Contents sent so far: what a progress line shows.
  std::uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }

 private:
  io::Task<void> run_lane(OutgoingStream* stream);
  io::Task<Status> send_chunk(OutgoingStream* stream, WorkItem item);
  io::Task<Status> send_pack(OutgoingStream* stream, WorkItem item);
  // Reads one chunk into the buffer, its checksum behind it.
  io::Task<Result<wire::Checksum>> fill_chunk(io::Io* io, const WorkItem* item, Buffer* buffer);
  io::Task<Result<wire::Checksum>> read_chunk(io::Io* io, const WorkItem* item, Buffer* buffer);
  Result<wire::Checksum> read_buffered(const storage::SourceFile& source, const WorkItem& item,
                                       Buffer& buffer);
  void withdraw(OutgoingFile& file, const Status& status);
  io::Task<void> end_held(io::Io* io, OutgoingFile* file);
  io::Task<void> tell_end(io::Io* io, OutgoingFile* file);
  io::Task<void> settle_chunk(io::Io* io, const WorkItem* item, const wire::Checksum* checksum);
  std::size_t fill_pack(const WorkItem& item, Buffer& buffer);
  std::size_t pack_file(OutgoingFile& file, std::span<std::byte> room);
  Result<wire::Checksum> read_small(OutgoingFile& file, std::span<std::byte> bytes);

  Session& session_;
  RateLimiter& limiter_;
  std::deque<OutgoingStream> streams_;
  std::atomic<std::uint64_t> bytes_sent_{0};
};

}  // namespace fgsync::transfer
