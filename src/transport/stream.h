// The stream seam: one ordered connection that carries frames of a data road, or messages of a
// control road. What is above it does not know whether TCP, memory or (later) a queue pair is
// below.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fgsync/status.h"
#include "io/io.h"
#include "memory/buffer_pool.h"

namespace fgsync::transport {

// The frame header as the transport sees it: bytes that it authenticates and does not interpret.
inline constexpr std::size_t kFrameHeaderBytes = 32;
using FrameHeaderBytes = std::array<std::byte, kFrameHeaderBytes>;

struct ReceivedFrame {
  FrameHeaderBytes header{};
  Buffer payload;
};

// A data stream. Several coroutines may send, one may receive; all on the worker that owns it.
// After a failure every further call fails. Sealing and opening, where there is a cipher, happen
// inside.
class Stream {
 public:
  virtual ~Stream() = default;
  // Sends the payload's bytes with its header and releases the buffer. Frames go in the order of
  // the calls; one whose call has failed does not arrive whole.
  virtual io::Task<Status> send(FrameHeaderBytes header, Buffer payload) = 0;
  // The next frame, in the order sent, in a buffer of the pool; kConnectionLost at the peer's end,
  // kProtocolError for a frame that does not fit or does not authenticate.
  virtual io::Task<Result<ReceivedFrame>> receive() = 0;
  // Makes every call in flight return. Any thread.
  virtual void shutdown() = 0;
  // Bytes put on, or taken off, the wire so far. Any thread.
  virtual std::uint64_t wire_bytes() const = 0;
};

// A control stream: whole messages of at most limits::kControlMessageBytesMax. One coroutine sends,
// one receives, on the control worker.
class ControlStream {
 public:
  virtual ~ControlStream() = default;
  virtual io::Task<Status> send(std::vector<std::byte> message) = 0;
  virtual io::Task<Result<std::vector<std::byte>>> receive() = 0;
  virtual void shutdown() = 0;
};

}  // namespace fgsync::transport
