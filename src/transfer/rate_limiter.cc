#include "transfer/rate_limiter.h"

#include <algorithm>

namespace fgsync::transfer {
namespace {

constexpr std::chrono::milliseconds kPatience{
    100};  // between two looks at whether the session is over

}  // namespace

io::Task<void> RateLimiter::acquire(io::Io& io, std::uint64_t bytes) {
  if (bytes_per_second_ == 0 || bytes == 0) co_return;
  const io::Duration cost(
      static_cast<io::Duration::rep>(double(bytes) * 1e9 / double(bytes_per_second_)));
  const io::TimePoint now = environment_.now();
  io::TimePoint start;
  {
    std::lock_guard lock(mutex_);
    start = std::max(next_, now);
    next_ = start + cost;
  }
  // The grant ends when its bytes would have passed at the limit: the first one is paid for as
  // well.
  const io::TimePoint end = start + cost;
  waiters_.fetch_add(1, std::memory_order_relaxed);
  while (environment_.now() < end && !stopped_.load(std::memory_order_relaxed)) {
    (void)co_await io::sleep_until(io, std::min(end, environment_.now() + kPatience));
  }
  waiters_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace fgsync::transfer
