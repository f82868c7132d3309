// What both engines share: the queue of coroutines that are ready, the inbox by which other threads
// post to it, the sleeping operations, and the loop of a worker.
#pragma once

#include <atomic>
#include <coroutine>
#include <mutex>
#include <optional>
#include <vector>

#include "io/blocking_pool.h"
#include "io/io.h"
#include "io/timer_queue.h"
#include "io/unique_fd.h"

namespace fgsync::io {

// A worker's Io. Fair: whatever is completed or posted goes to the end of the ready queue, and the
// kernel is asked for completions between any two rounds of that queue.
class Reactor : public Io {
 public:
  void submit(Operation& operation) final;
  void cancel_sleep(Operation& operation) final;
  void post(std::coroutine_handle<> coroutine) final;
  void register_region(std::span<std::byte> /*region*/) override {}
  Environment& environment() final { return environment_; }

  // Makes the calling thread this worker's until stop(); then runs what is still ready and returns.
  // Once.
  void run();
  // Any thread.
  void stop();

 protected:
  Reactor(Environment& environment, BlockingPool& blocking_pool, UniqueFd wake);

  // On the worker's thread, before anything else.
  virtual void enter() {}
  // Starts an operation on a socket or file.
  virtual void start(Operation& operation) = 0;
  // Collects completions, waiting for the first one up to `timeout` (nothing: without bound).
  // Readable `wake` ends the wait and is emptied.
  virtual void wait(std::optional<Duration> timeout) = 0;

  void complete(Operation& operation, std::int64_t result);
  BlockingPool& blocking_pool() { return blocking_pool_; }
  int wake_descriptor() const { return wake_.get(); }

 private:
  void take_inbox();
  void expire_sleeps();
  void run_ready();
  bool finished();
  void wait_for_completions();
  void wake();

  Environment& environment_;
  BlockingPool& blocking_pool_;
  const UniqueFd wake_;  // an eventfd
  std::vector<std::coroutine_handle<>> ready_;
  std::vector<std::coroutine_handle<>> running_;
  TimerQueue sleeps_;

  std::mutex mutex_;
  std::vector<std::coroutine_handle<>> inbox_;  // guarded by mutex_
  bool stopped_ = false;                        // guarded by mutex_
  bool asleep_ = false;  // guarded by mutex_; while false, whoever posts needs no system call
};

// The eventfd for a Reactor.
Result<UniqueFd> make_wake_descriptor();

}  // namespace fgsync::io
