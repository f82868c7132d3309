// Bounds how many things are under way: entries announced and not settled (so memory stays bounded
// whatever the size of the tree), files being made durable (so open descriptors stay bounded
// whatever the disk's speed). Thread-safe.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "io/sync.h"

namespace fgsync::transfer {

class FlowWindow {
 public:
  explicit FlowWindow(std::size_t limit) : limit_(limit) {}

  void add(std::size_t count) {
    std::lock_guard lock(mutex_);
    count_ += count;
  }
  void remove(std::size_t count) {
    std::lock_guard lock(mutex_);
    FGSYNC_ASSERT(count_ >= count);
    count_ -= count;
    wake_if_open();
  }
  // From then on nobody waits.
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    wake_if_open();
  }

  struct Awaiter {
    FlowWindow& window;
    io::Io& io;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> coroutine) const {
      std::lock_guard lock(window.mutex_);
      if (window.is_open()) return false;
      window.waiting_.push_back({&io, coroutine});
      return true;
    }
    void await_resume() const noexcept {}
  };
  // Goes on when fewer than the limit are under way.
  Awaiter wait_open(io::Io& io) { return Awaiter{*this, io}; }

 private:
  bool is_open() const { return closed_ || count_ < limit_; }
  void wake_if_open() {
    if (!is_open()) return;
    for (const io::internal::Waiting& waiter : waiting_) waiter.io->post(waiter.coroutine);
    waiting_.clear();
  }

  const std::size_t limit_;
  std::mutex mutex_;
  std::size_t count_ = 0;                       // guarded by mutex_
  bool closed_ = false;                         // guarded by mutex_
  std::vector<io::internal::Waiting> waiting_;  // guarded by mutex_
};

}  // namespace fgsync::transfer
