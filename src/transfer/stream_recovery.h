// What becomes of a session's streams when their connections are lost: each gets another one, and
// the run goes on; without it, if it must; and the session fails when no stream is left.
#pragma once

#include <atomic>
#include <cstddef>

#include "transfer/session.h"

namespace fgsync::transfer {

class StreamRecovery {
 public:
  explicit StreamRecovery(Session& session)
      : session_(session), streams_left_(session.streams.size()) {}

  // Stream `index` has lost its connection for the reason `lost`, and nothing uses that any more.
  // True: it has another one. False: it will have none, and the session goes on without it, has
  // failed, or needs none any more. On the stream's worker, and ends there.
  io::Task<bool> replace(std::size_t index, Status lost);
  // A stream has come to its regular end.
  void ended() { streams_left_.fetch_sub(1); }

  // Ends every replace() once `over` is set. On the control worker, for as long as the session
  // runs.
  io::Task<void> stop_when(io::Event& over);

 private:
  void give_up(std::size_t index, const Status& lost);

  Session& session_;
  std::atomic<std::size_t> streams_left_;  // neither ended nor given up
};

}  // namespace fgsync::transfer
