#include "transfer/rate_limiter.h"

#include <gtest/gtest.h>

#include "support/manual_io.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes
using std::chrono::milliseconds;
using std::chrono::seconds;

io::Task<void> send(RateLimiter* limiter, ManualIo* io, std::uint64_t bytes, int times,
                    std::vector<io::TimePoint>* granted) {
  for (int i = 0; i < times; ++i) {
    co_await limiter->acquire(*io, bytes);
    granted->push_back(io->environment().now());
  }
}

class Limiter : public ::testing::Test {
 protected:
  void spawn(RateLimiter* limiter, std::uint64_t bytes, int times) {
    group_.spawn(io_, send(limiter, &io_, bytes, times, &granted_));
    io_.run_ready();
  }

  ManualIo io_;
  io::TaskGroup group_;
  const io::TimePoint start_ = io_.environment().now();
  std::vector<io::TimePoint> granted_;
};

TEST_F(Limiter, WithoutALimitNobodyWaits) {
  RateLimiter limiter(io_.environment(), 0);
  spawn(&limiter, 1 << 30, 100);
  EXPECT_EQ(granted_.size(), 100u);
}

TEST_F(Limiter, GrantsComeAtTheRateTheFirstOneIncluded) {
  RateLimiter limiter(io_.environment(), 1'000'000);
  spawn(&limiter, 250'000, 4);
  io_.run_for(seconds(10));
  ASSERT_EQ(granted_.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(granted_[std::size_t(i)], start_ + milliseconds(250) * (i + 1));
  }
}

TEST_F(Limiter, SeveralStreamsShareOneRate) {
  RateLimiter limiter(io_.environment(), 1'000'000);
  for (int lane = 0; lane < 5; ++lane) spawn(&limiter, 100'000, 10);
  EXPECT_TRUE(limiter.has_waiters());
  io_.run_for(milliseconds(2500));
  EXPECT_EQ(granted_.size(), 25u);
  io_.run_for(milliseconds(2500));
  EXPECT_EQ(granted_.size(), 50u);
  EXPECT_FALSE(limiter.has_waiters());
}

TEST_F(Limiter, TimeThatNobodyUsedIsNotSavedUpForABurst) {
  RateLimiter limiter(io_.environment(), 1'000'000);
  io_.run_for(seconds(3600));
  spawn(&limiter, 500'000, 4);
  io_.run_for(milliseconds(1999));
  EXPECT_EQ(granted_.size(), 3u);
  io_.run_for(milliseconds(1));
  EXPECT_EQ(granted_.size(), 4u);
}

TEST_F(Limiter, NothingCostsNothing) {
  RateLimiter limiter(io_.environment(), 1);
  spawn(&limiter, 0, 3);
  EXPECT_EQ(granted_.size(), 3u);
}

TEST_F(Limiter, StoppingEndsEveryWaitWithinATenthOfASecond) {
  RateLimiter limiter(io_.environment(), 1);
  for (int lane = 0; lane < 3; ++lane) spawn(&limiter, 1'000'000, 1);
  io_.run_for(milliseconds(550));
  EXPECT_TRUE(granted_.empty());
  limiter.stop();
  io_.run_for(milliseconds(100));
  EXPECT_EQ(granted_.size(), 3u);
  EXPECT_FALSE(limiter.has_waiters());
  spawn(&limiter, 1'000'000, 1);
  EXPECT_EQ(granted_.size(), 4u);
}

}  // namespace
}  // namespace fgsync::transfer
