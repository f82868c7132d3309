#include "io/sync.h"

#include "engine_fixture.h"
#include "memory/buffer_pool.h"

namespace fgsync::io::testing {
namespace {

class SyncTest : public EngineTest {};
FGSYNC_FOR_EACH_ENGINE(SyncTest);

Task<void> wait_and_count(Io& io, Event& event, std::atomic<int>& count) {
  co_await event.wait(io);
  ++count;
}

Task<void> set_once(Runtime& runtime) {
  Event event;
  std::atomic<int> count = 0;
  TaskGroup group;
  for (std::size_t i = 0; i < 10; ++i) {
    Io& io = runtime.worker(i % 2);
    group.spawn(io, wait_and_count(io, event, count));
  }
  EXPECT_FALSE(event.is_set());
  event.set();
  co_await group.join(runtime.control());
  EXPECT_EQ(count, 10);
  EXPECT_TRUE(event.is_set());
  co_await event.wait(runtime.control());  // set stays set
}

TEST_P(SyncTest, AnEventLetsGoWhoeverWaitsNowOrLater) { runtime().run(set_once(runtime())); }

Task<void> pop_all(Io& io, Channel<int>& channel, std::vector<int>& values) {
  for (;;) {
    const std::optional<int> value = co_await channel.pop(io);
    if (!value) co_return;
    values.push_back(*value);
  }
}

Task<void> push_then_close(Runtime& runtime) {
  Channel<int> channel;
  std::vector<int> values;
  TaskGroup group;
  group.spawn(runtime.worker(0), pop_all(runtime.worker(0), channel, values));
  std::vector<int> expected;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(channel.push(i));
    expected.push_back(i);
  }
  channel.close();
  EXPECT_FALSE(channel.push(1000));
  co_await group.join(runtime.control());
  EXPECT_EQ(values, expected);
}

TEST_P(SyncTest, AChannelKeepsItsOrderAndIsEmptiedAfterItsClosing) {
  runtime().run(push_then_close(runtime()));
}

Task<void> share_a_channel(Runtime& runtime) {
  Channel<int> channel;
  std::vector<int> values[4];
  TaskGroup group;
  for (std::size_t i = 0; i < 4; ++i) {
    Io& io = runtime.worker(i % 2);
    group.spawn(io, pop_all(io, channel, values[i]));
  }
  for (int i = 0; i < 10'000; ++i) channel.push(1);
  channel.close();
  co_await group.join(runtime.control());
  std::size_t total = 0;
  for (const auto& popped : values) total += popped.size();
  EXPECT_EQ(total, 10'000U);
}

TEST_P(SyncTest, EachValueOfAChannelGoesToOneOfSeveralReaders) {
  runtime().run(share_a_channel(runtime()));
}

Task<void> clear_channel(Io& io) {
  Channel<std::unique_ptr<int>> channel;
  channel.push(std::make_unique<int>(1));
  channel.close_and_clear();
  const auto value = co_await channel.pop(io);
  EXPECT_FALSE(value.has_value());
}

TEST_P(SyncTest, AClearedChannelGivesNothing) { runtime().run(clear_channel(runtime().control())); }

Task<void> count_exclusively(Runtime& runtime, AsyncMutex& mutex, int& unguarded) {
  for (std::size_t i = 0; i < 500; ++i) {
    Io& io = runtime.worker(i % 2);
    co_await resume_on(io);
    const AsyncMutex::Guard guard = co_await mutex.lock(io);
    const int before = unguarded;
    co_await resume_on(io);  // held across a suspension
    unguarded = before + 1;
  }
}

Task<void> contend(Runtime& runtime) {
  AsyncMutex mutex;
  int unguarded = 0;
  TaskGroup group;
  for (std::size_t i = 0; i < 4; ++i) {
    group.spawn(runtime.worker(i % 2), count_exclusively(runtime, mutex, unguarded));
  }
  co_await group.join(runtime.control());
  EXPECT_EQ(unguarded, 2000);
}

TEST_P(SyncTest, AMutexIsHeldAcrossSuspensionsByOneAtATime) { runtime().run(contend(runtime())); }

Task<void> lock_and_note(Io& io, AsyncMutex& mutex, int name, std::vector<int>& order) {
  const AsyncMutex::Guard guard = co_await mutex.lock(io);
  order.push_back(name);
}

Task<void> queue_up(Io& io) {
  AsyncMutex mutex;
  std::vector<int> order;
  TaskGroup group;
  {
    const AsyncMutex::Guard guard = co_await mutex.lock(io);
    for (int i = 0; i < 10; ++i) group.spawn(io, lock_and_note(io, mutex, i, order));
    co_await resume_on(io);  // all of them wait now
  }
  co_await group.join(io);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_P(SyncTest, AMutexIsHandedOnInTheOrderOfAsking) {
  runtime().run(queue_up(runtime().control()));
}

Task<void> use_buffers(Io& io, BufferPool& pool, std::atomic<int>& uses) {
  for (int i = 0; i < 200; ++i) {
    Buffer buffer = co_await AcquireBuffer(pool, io);
    EXPECT_TRUE(bool(buffer));
    buffer.resize(1);
    *buffer.data() = std::byte{1};
    co_await resume_on(io);
    ++uses;
  }
}

Task<void> share_buffers(Runtime& runtime) {
  auto pool = BufferPool::create(4096, 3);
  EXPECT_TRUE(pool.ok());
  std::atomic<int> uses = 0;
  TaskGroup group;
  for (std::size_t i = 0; i < 10; ++i) {
    Io& io = runtime.worker(i % 2);
    group.spawn(io, use_buffers(io, **pool, uses));
  }
  co_await group.join(runtime.control());
  EXPECT_EQ(uses, 2000);
  EXPECT_EQ((*pool)->free_count(), 3U);
}

TEST_P(SyncTest, TenTasksOnTwoWorkersShareThreeBuffers) { runtime().run(share_buffers(runtime())); }

Task<void> keep_and_miss_deadlines(Io& io) {
  int expirations = 0;
  {
    DeadlineGuard kept(io, io.environment().now() + 1h, [&] { ++expirations; });
    EXPECT_FALSE(kept.expired());
  }
  EXPECT_EQ(expirations, 0);
  Event missed;
  DeadlineGuard guard(io, io.environment().now() + 1ms, [&] {
    ++expirations;
    missed.set();
  });
  co_await missed.wait(io);
  EXPECT_TRUE(guard.expired());
  EXPECT_EQ(expirations, 1);
}

TEST_P(SyncTest, ADeadlineActsOnlyWhenItIsMissed) {
  runtime().run(keep_and_miss_deadlines(runtime().control()));
}

Task<void> cancel_in_the_last_moment(Io& io) {
  bool expired = false;
  {
    DeadlineGuard guard(io, io.environment().now(), [&] { expired = true; });
  }
  (void)co_await sleep_until(io, io.environment().now() + 1ms);
  EXPECT_FALSE(expired);
}

TEST_P(SyncTest, ADeadlineThatIsDestroyedAsItPassesDoesNothing) {
  runtime().run(cancel_in_the_last_moment(runtime().control()));
}

Task<void> spawn_more(Io& io, TaskGroup& group, std::atomic<int>& count, int depth) {
  ++count;
  if (depth == 0) co_return;
  group.spawn(io, spawn_more(io, group, count, depth - 1));
  group.spawn(io, spawn_more(io, group, count, depth - 1));
}

Task<void> join_a_tree(Runtime& runtime) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> count = 0;
    TaskGroup group;
    for (std::size_t i = 0; i < 2; ++i) {
      group.spawn(runtime.worker(i), spawn_more(runtime.worker(i), group, count, 6));
    }
    co_await group.join(runtime.control());
    EXPECT_EQ(count, 2 * 127);
    co_await group.join(runtime.control());  // nothing runs: at once
  }
}

TEST_P(SyncTest, AGroupIsJoinedWhenTheTasksThatItsTasksStartedHaveEnded) {
  runtime().run(join_a_tree(runtime()));
}

}  // namespace
}  // namespace fgsync::io::testing
