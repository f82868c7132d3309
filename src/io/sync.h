// How coroutines wait for each other, on one worker or across several. Waiters are resumed on the
// worker they waited on. All of it is thread-safe; nothing here blocks a thread for longer than a
// few instructions. A waiter is always resumed outside the lock: it may at once destroy what it
// waited for.
#pragma once

#include <coroutine>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "io/io.h"
#include "memory/buffer_pool.h"

namespace fgsync::io {

namespace internal {
struct Waiting {
  Io* io;
  std::coroutine_handle<> coroutine;
};
}  // namespace internal

// Set once; whoever waits, now or later, goes on.
class Event {
 public:
  void set() {
    std::vector<internal::Waiting> waiting;
    {
      std::lock_guard lock(mutex_);
      set_ = true;
      waiting.swap(waiting_);
    }
    for (const auto& waiter : waiting) waiter.io->post(waiter.coroutine);
  }
  bool is_set() const {
    std::lock_guard lock(mutex_);
    return set_;
  }

  struct Awaiter {
    Event& event;
    Io& io;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> coroutine) const {
      std::lock_guard lock(event.mutex_);
      if (event.set_) return false;
      event.waiting_.push_back({&io, coroutine});
      return true;
    }
    void await_resume() const noexcept {}
  };
  Awaiter wait(Io& io) { return Awaiter{*this, io}; }

 private:
  mutable std::mutex mutex_;
  bool set_ = false;                        // guarded by mutex_
  std::vector<internal::Waiting> waiting_;  // guarded by mutex_
};

// A queue between coroutines. `push` never waits (what goes in is bounded by its producers); `pop`
// waits for a value and gives nullopt once the channel is closed and empty.
template <typename T>
class Channel {
 public:
  // False, and the value dropped, when the channel is closed.
  bool push(T value) {
    internal::Waiting waiter{};
    {
      std::lock_guard lock(mutex_);
      if (closed_) return false;
      if (waiting_.empty()) {
        values_.push_back(std::move(value));
        return true;
      }
      waiting_.front()->value_.emplace(std::move(value));
      waiter = {&waiting_.front()->io_, waiting_.front()->coroutine_};
      waiting_.pop_front();
    }
    waiter.io->post(waiter.coroutine);
    return true;
  }
  void close() {
    std::vector<internal::Waiting> waiting;
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
      for (Awaiter* waiter : waiting_) waiting.push_back({&waiter->io_, waiter->coroutine_});
      waiting_.clear();
    }
    for (const auto& waiter : waiting) waiter.io->post(waiter.coroutine);
  }
  // Drops what is inside.
  void clear() {
    std::deque<T> dropped;
    std::lock_guard lock(mutex_);
    dropped.swap(values_);
  }
  void close_and_clear() {
    close();
    clear();
  }

  class Awaiter {
   public:
    Awaiter(Channel& channel, Io& io) : channel_(channel), io_(io) {}
    Awaiter(const Awaiter&) = delete;
    Awaiter& operator=(const Awaiter&) = delete;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> coroutine) {
      std::lock_guard lock(channel_.mutex_);
      if (!channel_.values_.empty()) {
        value_.emplace(std::move(channel_.values_.front()));
        channel_.values_.pop_front();
        return false;
      }
      if (channel_.closed_) return false;
      coroutine_ = coroutine;
      channel_.waiting_.push_back(this);
      return true;
    }
    std::optional<T> await_resume() { return std::move(value_); }

   private:
    friend class Channel;
    Channel& channel_;
    Io& io_;
    std::coroutine_handle<> coroutine_;
    std::optional<T> value_;
  };
  Awaiter pop(Io& io) { return Awaiter(*this, io); }

 private:
  std::mutex mutex_;
  bool closed_ = false;           // guarded by mutex_
  std::deque<T> values_;          // guarded by mutex_
  std::deque<Awaiter*> waiting_;  // guarded by mutex_
};

// Mutual exclusion across suspensions, first come, first served.
class AsyncMutex {
 public:
  class [[nodiscard]] Guard {
   public:
    explicit Guard(AsyncMutex* mutex) : mutex_(mutex) {}
    Guard(Guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    Guard& operator=(Guard&&) = delete;
    ~Guard() {
      if (mutex_) mutex_->unlock();
    }

   private:
    AsyncMutex* mutex_;
  };
  struct Awaiter {
    AsyncMutex& mutex;
    Io& io;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> coroutine) const {
      std::lock_guard lock(mutex.mutex_);
      if (!mutex.locked_) {
        mutex.locked_ = true;
        return false;
      }
      mutex.waiting_.push_back({&io, coroutine});
      return true;
    }
    Guard await_resume() const noexcept { return Guard(&mutex); }
  };
  Awaiter lock(Io& io) { return Awaiter{*this, io}; }

 private:
  void unlock() {
    internal::Waiting next{};
    {
      std::lock_guard lock(mutex_);
      if (waiting_.empty()) {
        locked_ = false;
        return;
      }
      next = waiting_.front();
      waiting_.erase(waiting_.begin());
    }
    next.io->post(next.coroutine);
  }
  std::mutex mutex_;
  bool locked_ = false;  // guarded by mutex_
  // A vector: there are as many of these as files on their way, an empty deque takes 0.6 KB, and a
  // queue is seldom longer than one.
  std::vector<internal::Waiting> waiting_;  // guarded by mutex_
};

// Waits for a slot of the pool.
class AcquireBuffer final : private BufferWaiter {
 public:
  AcquireBuffer(BufferPool& pool, Io& io) : pool_(pool), io_(io) {}
  AcquireBuffer(const AcquireBuffer&) = delete;
  AcquireBuffer& operator=(const AcquireBuffer&) = delete;
  bool await_ready() {
    auto buffer = pool_.try_acquire();
    if (buffer) buffer_ = std::move(*buffer);
    return bool(buffer_);
  }
  bool await_suspend(std::coroutine_handle<> coroutine) {
    coroutine_ = coroutine;
    auto buffer = pool_.acquire_or_wait(*this);
    if (!buffer) return true;  // *this may already be in other hands: touch nothing
    buffer_ = std::move(*buffer);
    return false;
  }
  Buffer await_resume() { return std::move(buffer_); }

 private:
  void on_buffer(Buffer buffer) override {
    buffer_ = std::move(buffer);
    io_.post(coroutine_);
  }
  BufferPool& pool_;
  Io& io_;
  std::coroutine_handle<> coroutine_;
  Buffer buffer_;
};

// Runs tasks beside each other, on any workers, and waits for all of them. Must be joined before it
// is destroyed.
class TaskGroup {
 public:
  ~TaskGroup() { FGSYNC_ASSERT(running_ == 0); }
  // Starts the task on `io`'s worker.
  void spawn(Io& io, Task<void> task);

  struct JoinAwaiter {
    TaskGroup& group;
    Io& io;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> coroutine) const {
      std::lock_guard lock(group.mutex_);
      if (group.running_ == 0) return false;
      FGSYNC_ASSERT(!group.joiner_.coroutine);
      group.joiner_ = {&io, coroutine};
      return true;
    }
    void await_resume() const noexcept {}
  };
  JoinAwaiter join(Io& io) { return JoinAwaiter{*this, io}; }

 private:
  friend struct GroupMember;
  void finished();
  std::mutex mutex_;
  std::size_t running_ = 0;     // guarded by mutex_
  internal::Waiting joiner_{};  // guarded by mutex_
};

// Calls `expire` on this worker unless it is destroyed before the deadline.
class DeadlineGuard {
 public:
  DeadlineGuard(Io& io, TimePoint deadline, std::function<void()> expire);
  DeadlineGuard(const DeadlineGuard&) = delete;
  DeadlineGuard& operator=(const DeadlineGuard&) = delete;
  ~DeadlineGuard();
  bool expired() const;

 private:
  struct State;
  Io& io_;
  std::shared_ptr<State> state_;
  friend struct DeadlineCoroutine;
};

}  // namespace fgsync::io
