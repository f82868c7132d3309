// --bwlimit: a token bucket over all streams of the sender.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "io/io.h"

namespace fgsync::transfer {

// Thread-safe. Whoever wants to send first waits its turn: each grant moves the time of the next
// one on by what it costs, so over any time the rate is exact and no burst exceeds one grant.
class RateLimiter {
 public:
  // `bytes_per_second` 0: no limit.
  RateLimiter(io::Environment& environment, std::uint64_t bytes_per_second)
      : environment_(environment), bytes_per_second_(bytes_per_second) {}

  // Returns when `bytes` may be sent.
  io::Task<void> acquire(io::Io& io, std::uint64_t bytes);
  // Everybody who waits goes on within a tenth of a second: the session is over.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  // How many are waiting for their turn right now: a wait that is asked for is not a stall.
  bool has_waiters() const { return waiters_.load(std::memory_order_relaxed) > 0; }

 private:
  io::Environment& environment_;
  const std::uint64_t bytes_per_second_;
  std::mutex mutex_;
  io::TimePoint next_{};  // guarded by mutex_; when the next grant may start
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint32_t> waiters_{0};
};

}  // namespace fgsync::transfer
