// What a worker does beside sockets: sleeping, posting, blocking jobs, and being fair.
#include <pthread.h>
#include <sys/socket.h>

#include <atomic>
#include <csignal>

#include "engine_fixture.h"

namespace fgsync::io::testing {
namespace {

class WorkerTest : public EngineTest {};
FGSYNC_FOR_EACH_ENGINE(WorkerTest);

Task<void> sleep_and_note(Io& io, TimePoint deadline, int name, std::vector<int>& order) {
  const std::int64_t result = co_await sleep_until(io, deadline);
  EXPECT_EQ(result, 0);
  EXPECT_GE(io.environment().now(), deadline);
  order.push_back(name);
}

Task<void> sleep_in_disorder(Io& io) {
  const TimePoint now = io.environment().now();
  std::vector<int> order;
  TaskGroup group;
  group.spawn(io, sleep_and_note(io, now + 3ms, 3, order));
  group.spawn(io, sleep_and_note(io, now + 1ms, 1, order));
  group.spawn(io, sleep_and_note(io, now + 2ms, 2, order));
  group.spawn(io, sleep_and_note(io, now - 1s, 0, order));
  co_await group.join(io);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST_P(WorkerTest, SleepsEndInTheOrderOfTheirDeadlines) {
  runtime().run(sleep_in_disorder(runtime().control()));
}

Task<void> await_sleep(OperationAwaiter& sleep, std::int64_t& result) {
  const std::int64_t slept = co_await sleep;
  result = slept;
}

Task<void> cancel_sleeps(Io& io) {
  OperationAwaiter sleep(io, io.environment().now() + 1h);
  std::int64_t result = 1;
  TaskGroup group;
  group.spawn(io, await_sleep(sleep, result));
  OperationAwaiter short_sleep(io, io.environment().now());
  (void)co_await short_sleep;  // by now the long one has begun
  io.cancel_sleep(sleep.operation);
  io.cancel_sleep(sleep.operation);
  io.cancel_sleep(short_sleep.operation);
  co_await group.join(io);
  EXPECT_EQ(result, -ECANCELED);
}

TEST_P(WorkerTest, ACancelledSleepEndsAtOnceAndOnce) {
  runtime().run(cancel_sleeps(runtime().control()));
}

TEST_P(WorkerTest, WorkersAreNamedThreadsWithoutSignals) {
  struct Check {
    static Task<void> run(Runtime& runtime) {
      co_await resume_on(runtime.worker(1));
      char name[16] = {};
      pthread_getname_np(pthread_self(), name, sizeof name);
      EXPECT_STREQ(name, "fgsync-w1");
      sigset_t blocked;
      pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
      EXPECT_EQ(sigismember(&blocked, SIGINT), 1);
      EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
      co_await resume_on(runtime.control());
    }
  };
  runtime().run(Check::run(runtime()));
}

Task<void> hop(Runtime& runtime, int rounds, std::atomic<int>& hops) {
  for (int i = 0; i < rounds; ++i) {
    co_await resume_on(runtime.worker(0));
    co_await resume_on(runtime.worker(1));
    ++hops;
  }
}

Task<void> hop_much(Runtime& runtime) {
  std::atomic<int> hops = 0;
  TaskGroup group;
  for (int i = 0; i < 10; ++i) group.spawn(runtime.worker(0), hop(runtime, 1000, hops));
  co_await group.join(runtime.control());
  EXPECT_EQ(hops, 10'000);
}

TEST_P(WorkerTest, TasksMoveBetweenWorkersManyTimes) { runtime().run(hop_much(runtime())); }

Task<void> wait_for_events(Io& io, std::deque<Event>& events) {
  for (Event& event : events) co_await event.wait(io);
}

TEST_P(WorkerTest, PostsFromManyThreadsAllArrive) {
  std::deque<Event> events(1000);
  std::vector<std::thread> threads;
  for (std::size_t first = 0; first < 4; ++first) {
    threads.emplace_back([&events, first] {
      for (std::size_t i = first; i < events.size(); i += 4) events[i].set();
    });
  }
  runtime().run(wait_for_events(runtime().control(), events));
  for (std::thread& thread : threads) thread.join();
}

// The whole program relies on these forms. What a job captures must be copied and destroyed exactly
// once, which the address sanitizer watches.
Task<void> run_jobs(Io& io) {
  const auto worker = std::this_thread::get_id();
  for (int round = 0; round < 100; ++round) {
    std::string text(1000, 'x');
    std::size_t length = 0;
    co_await run_blocking(io, [&, round] {
      EXPECT_NE(std::this_thread::get_id(), worker);
      length = text.size() + static_cast<std::size_t>(round);
    });
    EXPECT_EQ(std::this_thread::get_id(), worker);
    EXPECT_EQ(length, 1000 + static_cast<std::size_t>(round));
    auto shared = std::make_shared<int>(round);
    auto job = [&length, text, shared] { length = text.size() * 2; };
    EXPECT_EQ(shared.use_count(), 2);
    co_await run_blocking(io, job);
    EXPECT_EQ(shared.use_count(), 2);
    EXPECT_EQ(length, 2000U);
  }
}

TEST_P(WorkerTest, BlockingJobsRunElsewhereAndTheirCapturesLiveOnce) {
  runtime().run(run_jobs(runtime().control()));
}

Task<void> run_jobs_where_they_fit(Io& io) {
  const auto worker = std::this_thread::get_id();
  std::thread::id ran_on;
  co_await run_job(io, /*may_block=*/false, [&] { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, worker);
  co_await run_job(io, /*may_block=*/true, [&] { ran_on = std::this_thread::get_id(); });
  EXPECT_NE(ran_on, worker);
  EXPECT_EQ(std::this_thread::get_id(), worker);
}

TEST_P(WorkerTest, JobsThatDoNotBlockRunHereAndOthersElsewhere) {
  runtime().run(run_jobs_where_they_fit(runtime().control()));
}

Task<void> run_meeting_job(Io& io, std::atomic<int>& inside) {
  co_await run_blocking(io, [&] {
    ++inside;
    while (inside < 4) std::this_thread::yield();
  });
}

Task<void> run_jobs_together(Io& io) {
  std::atomic<int> inside = 0;
  TaskGroup group;
  for (int i = 0; i < 4; ++i) group.spawn(io, run_meeting_job(io, inside));
  co_await group.join(io);
  EXPECT_EQ(inside, 4);
}

TEST_P(WorkerTest, AsManyBlockingJobsRunAtOnceAsThereAreThreads) {
  runtime().run(run_jobs_together(runtime().control()));
}

Connection socket_pair(Network& network) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {Socket(&network, ends[0]), Socket(&network, ends[1])};
}

// Never waits for anything that is not there already.
Task<void> stay_busy(Io& io, const bool& stop) {
  Connection pair = socket_pair(io.environment().network());
  std::byte byte{1};
  while (!stop) {
    const Status sent = co_await send_all(io, pair.near, std::span(&byte, 1));
    EXPECT_TRUE(sent.ok());
    const Status received = co_await receive_exactly(io, pair.far, std::span(&byte, 1));
    EXPECT_TRUE(received.ok());
  }
}

Task<void> need_everything(Io& io, Event& from_thread, const Socket& socket, bool& stop) {
  (void)co_await sleep_until(io, io.environment().now() + 1ms);
  co_await from_thread.wait(io);
  co_await run_blocking(io, [] {});
  std::byte byte{};
  const Status received = co_await receive_exactly(io, socket, std::span(&byte, 1));
  EXPECT_TRUE(received.ok());
  stop = true;
}

Task<void> be_busy_and_fair(Io& io) {
  bool stop = false;
  Event from_thread;
  Connection pair = socket_pair(io.environment().network());
  std::thread elsewhere([&] {
    from_thread.set();
    EXPECT_EQ(::send(pair.near.descriptor(), "x", 1, MSG_NOSIGNAL), 1);
  });
  TaskGroup group;
  group.spawn(io, stay_busy(io, stop));
  group.spawn(io, need_everything(io, from_thread, pair.far, stop));
  co_await group.join(io);
  elsewhere.join();
}

TEST_P(WorkerTest, ABusyCoroutineKeepsNobodyFromSleepsPostsJobsAndSockets) {
  runtime().run(be_busy_and_fair(runtime().control()));
}

Task<void> count_exchanges(Io& io, int rounds, int& mine, const int& other) {
  Connection pair = socket_pair(io.environment().network());
  std::byte byte{1};
  for (mine = 0; mine < rounds; ++mine) {
    const Status sent = co_await send_all(io, pair.near, std::span(&byte, 1));
    const Status received = co_await receive_exactly(io, pair.far, std::span(&byte, 1));
    EXPECT_TRUE(sent.ok() && received.ok());
    EXPECT_LE(mine, other + 2);
  }
  mine += rounds;  // ended: the other one is free to go on
}

Task<void> race(Io& io) {
  int left = 0;
  int right = 0;
  TaskGroup group;
  group.spawn(io, count_exchanges(io, 5000, left, right));
  group.spawn(io, count_exchanges(io, 5000, right, left));
  co_await group.join(io);
}

TEST_P(WorkerTest, TenThousandTinyExchangesTakeTurns) { runtime().run(race(runtime().control())); }

Task<int> answer_at_once(int value) { co_return value; }

Task<void> await_many_that_never_suspend(long& sum) {
  for (int i = 0; i < 1'000'000; ++i) {
    const int value = co_await answer_at_once(1);
    sum += value;
  }
}

TEST_P(WorkerTest, AMillionTasksThatNeverSuspendNeedNoStack) {
  long sum = 0;
  runtime().run(await_many_that_never_suspend(sum));
  EXPECT_EQ(sum, 1'000'000);
}

TEST_P(WorkerTest, ARuntimeThatNeverRanGoesAway) { EXPECT_EQ(runtime().worker_count(), 2U); }

}  // namespace
}  // namespace fgsync::io::testing
