// The sender's data road: lanes. Each stream has several; a lane takes the next piece of work,
// reads it into a buffer, checksums it and sends it. While one lane's frame is on the wire the next
// lane reads, and the buffer pool alone bounds how far they run ahead.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "transfer/chunk_scheduler.h"
#include "transfer/rate_limiter.h"
#include "transfer/session.h"

namespace fgsync::transfer {

// Lanes of one stream: one sends while one reads.
inline constexpr int kLanesPerStream = 2;

class SendWorker {
 public:
  SendWorker(Session& session, ChunkScheduler& scheduler, RateLimiter& limiter)
      : session_(session), scheduler_(scheduler), limiter_(limiter) {}

  // Works on stream number `index`, on its worker, until the scheduler has nothing more; then ends
  // the stream.
  io::Task<void> run_stream(std::size_t index);

  // Contents sent so far: what a progress line shows.
  std::uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }

 private:
  io::Task<void> run_lane(DataStream* data);
  io::Task<Status> send_chunk(DataStream* data, WorkItem item);
  io::Task<Status> send_pack(DataStream* data, WorkItem item);
  // Reads one chunk and its checksum into the buffer.
  io::Task<Result<wire::Checksum>> read_chunk(io::Io* io, const WorkItem* item, Buffer* buffer);
  Result<wire::Checksum> read_buffered(const storage::SourceFile& source, const WorkItem& item,
                                       Buffer& buffer);
  void withdraw(OutgoingFile& file, const Status& status);
  io::Task<void> settle_chunk(io::Io* io, const WorkItem* item, const wire::Checksum* checksum);
  std::size_t fill_pack(const WorkItem& item, Buffer& buffer);
  std::size_t pack_file(OutgoingFile& file, std::span<std::byte> room);
  Result<wire::Checksum> read_small(OutgoingFile& file, std::span<std::byte> bytes);

  Session& session_;
  ChunkScheduler& scheduler_;
  RateLimiter& limiter_;
  std::atomic<std::uint64_t> bytes_sent_{0};
};

}  // namespace fgsync::transfer
