// The receiver's side of one stream: its frames, over one connection after the other, each once.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "transfer/session.h"
#include "transfer/stream_recovery.h"
#include "wire/message.h"

namespace fgsync::transfer {

// receive() and finish() on the stream's worker.
class IncomingStream {
 public:
  IncomingStream(Session& session, std::size_t index, StreamRecovery& recovery)
      : session_(session),
        index_(index),
        data_(*session.streams[index]),
        recovery_(recovery),
        connection_(data_.connection()) {}

  io::Io& io() const { return data_.io(); }

  // The next frame, over whichever connection. Fails when no more can come; that is either no
  // matter or has failed the session.
  io::Task<Result<transport::ReceivedFrame>> receive();
  // The stream's end has come.
  void finish();

  // The sender has lost a connection. kProtocolError if that makes no sense. Any thread.
  Status on_ended(const wire::StreamEnded& ended);
  // Frames that have come whole so far. Any thread.
  std::uint64_t frames() const { return frames_.load(std::memory_order_relaxed); }

 private:
  void begin_connection();
  void end_connection();
  void tell_ended(std::uint32_t generation);

  Session& session_;
  const std::size_t index_;
  DataStream& data_;
  StreamRecovery& recovery_;
  DataStream::Connection connection_;  // this worker only
  std::atomic<std::uint64_t> frames_{0};
  std::mutex mutex_;
  bool reading_ = true;  // guarded by mutex_; frames may still come over connection_
};

}  // namespace fgsync::transfer
