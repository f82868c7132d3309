#include "io/timer_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace fgsync::io {
namespace {

TimePoint at(std::int64_t nanoseconds) { return TimePoint(Duration(nanoseconds)); }

TEST(TimerQueueTest, EqualDeadlinesEndInTheOrderOfTheirStart) {
  std::deque<Operation> sleeps;
  TimerQueue queue;
  for (int i = 0; i < 100; ++i) {
    sleeps.emplace_back(Operation::Kind::kSleep).deadline = at(5);
    queue.add(sleeps.back());
  }
  for (Operation& expected : sleeps) EXPECT_EQ(queue.pop_expired(at(5)), &expected);
  EXPECT_EQ(queue.pop_expired(at(5)), nullptr);
}

TEST(TimerQueueTest, NothingExpiresBeforeItsDeadline) {
  Operation sleep(Operation::Kind::kSleep);
  sleep.deadline = at(10);
  TimerQueue queue;
  queue.add(sleep);
  EXPECT_EQ(queue.pop_expired(at(9)), nullptr);
  EXPECT_EQ(queue.next_deadline(), at(10));
  EXPECT_EQ(queue.pop_expired(at(10)), &sleep);
  EXPECT_FALSE(queue.next_deadline());
}

TEST(TimerQueueTest, RemovedOnesNeverExpireAndAreRemovedOnce) {
  std::mt19937 random(7);
  std::deque<Operation> sleeps;
  std::vector<bool> removed(1000);
  TimerQueue queue;
  for (std::size_t i = 0; i < removed.size(); ++i) {
    sleeps.emplace_back(Operation::Kind::kSleep).deadline = at(random() % 500);
    queue.add(sleeps.back());
  }
  for (std::size_t i = 0; i < removed.size(); ++i) {
    removed[i] = random() % 2 == 0;
    if (!removed[i]) continue;
    EXPECT_TRUE(queue.remove(sleeps[i]));
    EXPECT_FALSE(queue.remove(sleeps[i]));
  }
  TimePoint last = at(0);
  std::size_t expired = 0;
  while (Operation* const operation = queue.pop_expired(at(500))) {
    EXPECT_GE(operation->deadline, last);
    last = operation->deadline;
    for (std::size_t i = 0; i < removed.size(); ++i) {
      if (&sleeps[i] == operation) {
        EXPECT_FALSE(removed[i]);
      }
    }
    ++expired;
  }
  EXPECT_EQ(expired, static_cast<std::size_t>(std::count(removed.begin(), removed.end(), false)));
}

}  // namespace
}  // namespace fgsync::io
