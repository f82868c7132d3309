// Threads for what blocks: file metadata, syncs, buffered I/O and, where there is no ring, direct
// I/O. The kernel would run these on threads of its own in any case (io_uring hands them to its
// workers), so a pool loses nothing.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "io/io.h"
#include "io/thread.h"

namespace fgsync::io {

// One for the whole process, thread-safe. Jobs start in the order they came. Every job must have
// ended before the pool goes away, and every Io it posts to must outlive it.
class BlockingPool {
 public:
  // Starts the first thread, so that a host which allows none is noticed here; the others start
  // when needed.
  static Result<std::unique_ptr<BlockingPool>> create(std::size_t threads_max);
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  // Runs a kRun, kRead or kWrite operation on a thread, then posts its waiter to `io`.
  void submit(Io& io, Operation& operation);

 private:
  struct Job {
    Io* io;
    Operation* operation;
  };
  explicit BlockingPool(std::size_t threads_max) : threads_max_(threads_max) {}
  Status start_thread();
  void serve();

  const std::size_t threads_max_;
  std::mutex mutex_;
  std::condition_variable job_or_stop_;
  std::deque<Job> jobs_;         // guarded by mutex_
  std::size_t idle_ = 0;         // guarded by mutex_
  bool stopping_ = false;        // guarded by mutex_
  std::vector<Thread> threads_;  // guarded by mutex_, except in the destructor
};

}  // namespace fgsync::io
