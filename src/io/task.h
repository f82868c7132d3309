// Task<T>: a coroutine that starts when it is awaited and hands its result to the one who awaits
// it. It is what makes one chunk's life read as straight code. Tasks of one chain run on the worker
// (Io) that they were started on; they move between workers only where an awaitable says so.
//
// Rule of use: a coroutine is a function or member function, never a capturing lambda (the captures
// would die before the frame), and takes what must outlive a suspension by value or by a reference
// whose owner provably stays.
//
// Rule for g++ 11 and 12, which destroy these twice (as seen by the address sanitizer): within one
// expression with a co_await, no temporary made by braces (an aggregate, an initializer list), no
// lambda that owns what it captures, and no ?: of class type. Give it a name in a statement before,
// then move it in. Temporaries made by a constructor or a function call are fine.
#pragma once

#include <coroutine>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/assert.h"

namespace fgsync::io {

template <typename T>
class Task;

namespace internal {

// A task on its first stretch: between being awaited and its first suspension. One that ends there
// lets the awaiting coroutine go on by returning to it. Handing over to it instead (symmetric
// transfer) would need a tail call, and the compiler makes none without optimization or under a
// sanitizer: a loop over tasks that do not suspend would then use up the stack.
struct FirstStretch {
  void* task;
  FirstStretch* outer;
  bool ended = false;
};
inline constinit thread_local FirstStretch* innermost_first_stretch = nullptr;

struct FinalAwaiter {
  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> finished) const noexcept {
    FirstStretch* const stretch = innermost_first_stretch;
    if (stretch == nullptr || stretch->task != finished.address()) {
      return finished.promise().continuation;
    }
    stretch->ended = true;
    return std::noop_coroutine();
  }
  void await_resume() const noexcept {}
};

struct PromiseCommon {
  std::coroutine_handle<> continuation = std::noop_coroutine();
  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }
  void unhandled_exception() const noexcept { std::abort(); }  // the libraries don't throw
};

template <typename T>
struct Promise : PromiseCommon {
  std::optional<T> value;
  Task<T> get_return_object();
  void return_value(T result) { value.emplace(std::move(result)); }
  T take() { return std::move(*value); }
};

template <>
struct Promise<void> : PromiseCommon {
  Task<void> get_return_object();
  void return_void() const noexcept {}
  void take() const noexcept {}
};

}  // namespace internal

template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = internal::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  struct Awaiter {
    Handle handle;
    bool await_ready() const noexcept { return false; }
    // False: it has ended already. Otherwise it may be running on another worker by now, and this
    // awaiter be gone.
    bool await_suspend(std::coroutine_handle<> awaiting) const noexcept {
      handle.promise().continuation = awaiting;
      internal::FirstStretch stretch{handle.address(), internal::innermost_first_stretch};
      internal::innermost_first_stretch = &stretch;
      handle.resume();
      internal::innermost_first_stretch = stretch.outer;
      return !stretch.ended;
    }
    T await_resume() const { return handle.promise().take(); }
  };
  Awaiter operator co_await() const& noexcept {
    FGSYNC_ASSERT(handle_ && !handle_.done());
    return Awaiter{handle_};
  }

 private:
  Handle handle_;
};

namespace internal {

template <typename T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}

inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}

}  // namespace internal
}  // namespace fgsync::io
