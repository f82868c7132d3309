// The sender's side of one stream: what goes over its connections, one after the other, and what
// must go again when one of them is lost.
#pragma once

#include <cstdint>
#include <mutex>

#include "io/sync.h"
#include "transfer/chunk_scheduler.h"
#include "transfer/sent_frames.h"
#include "transfer/session.h"
#include "transfer/stream_recovery.h"
#include "wire/frame.h"

namespace fgsync::transfer {

// Its lanes and finish_connection() run on the stream's worker.
class OutgoingStream {
 public:
  OutgoingStream(Session& session, std::size_t index, ChunkScheduler& scheduler,
                 StreamRecovery& recovery);

  io::Io& io() const { return data_.io(); }

  // For its lanes. The next piece of work; nullopt when there is no more, or the connection is
  // lost.
  ChunkScheduler::Awaiter next() { return scheduler_.next(lanes_, io()); }
  // Sends the piece. When that fails the connection is lost, and the piece goes again by itself.
  io::Task<Status> send(wire::FrameHeader header, WorkItem item, Buffer payload);
  // The piece need not be sent.
  void skip() { scheduler_.settle(lanes_, 1); }

  // After the lanes have ended: hears from the receiver what has arrived, gives back what has not,
  // and goes on to another connection. False: the stream is done with, or the session is.
  io::Task<bool> finish_connection();

  // What the receiver says of this stream. kProtocolError if it can't be. Any thread.
  Status on_frames(std::uint64_t frames);
  Status on_ended(const wire::StreamEnded& ended);
  // The session has failed: nobody waits for the receiver any more. Any thread.
  void stop() { ended_.close(); }

 private:
  void begin_connection();
  void lose(const Status& status);
  Result<bool> settle(std::uint64_t frames);

  Session& session_;
  const std::size_t index_;
  DataStream& data_;
  ChunkScheduler& scheduler_;
  StreamRecovery& recovery_;
  // The connection that is used; this worker only.
  DataStream::Connection connection_;
  Status lost_;  // why it is of no use any more, if that was noticed here
  ChunkScheduler::Lanes lanes_;
  io::Channel<std::uint64_t> ended_;  // at most one for each connection: what has arrived
  std::mutex mutex_;
  SentFrames sent_;               // guarded by mutex_, together with what it settles of lanes_
  std::uint32_t generation_ = 0;  // guarded by mutex_; the connection's
  bool has_ended_ = false;        // guarded by mutex_; the receiver has said so
};

}  // namespace fgsync::transfer
