#include "io/blocking_pool.h"

#include <string>

#include "base/assert.h"
#include "io/operation_steps.h"

namespace fgsync::io {

Result<std::unique_ptr<BlockingPool>> BlockingPool::create(std::size_t threads_max) {
  FGSYNC_ASSERT(threads_max > 0);
  std::unique_ptr<BlockingPool> pool(new BlockingPool(threads_max));
  std::unique_lock lock(pool->mutex_);
  Status started = pool->start_thread();
  lock.unlock();
  if (!started.ok()) return started;
  return pool;
}

BlockingPool::~BlockingPool() {
  {
    std::lock_guard lock(mutex_);
    FGSYNC_ASSERT(jobs_.empty());
    stopping_ = true;
  }
  job_or_stop_.notify_all();
  threads_.clear();  // joins them
}

void BlockingPool::submit(Io& io, Operation& operation) {
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back({&io, &operation});
    // A thread that cannot be had now only makes the job wait for one of those that exist.
    if (jobs_.size() > idle_ && threads_.size() < threads_max_) (void)start_thread();
  }
  job_or_stop_.notify_one();
}

Status BlockingPool::start_thread() {
  Result<Thread> thread =
      Thread::start("fgsync-b" + std::to_string(threads_.size()), [this] { serve(); });
  if (!thread.ok()) return thread.status();
  threads_.push_back(std::move(*thread));
  return Status();
}

void BlockingPool::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    job_or_stop_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    --idle_;
    if (jobs_.empty()) return;
    const Job job = jobs_.front();
    jobs_.pop_front();
    lock.unlock();
    run_blocking_operation(*job.operation);
    job.operation->in_flight = false;
    job.io->post(job.operation->waiter);  // the operation is gone after this
    lock.lock();
  }
}

}  // namespace fgsync::io
