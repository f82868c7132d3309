#include "io/sync.h"

namespace fgsync::io {

// A coroutine nobody awaits: it starts at once and destroys itself at its end.
struct Detached {
  struct promise_type {
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void unhandled_exception() const noexcept { std::abort(); }
    void return_void() const noexcept {}
  };
};

struct GroupMember {
  static Detached run(TaskGroup* group, Io* io, Task<void> task) {
    co_await resume_on(*io);
    {
      Task<void> owned = std::move(task);
      co_await owned;
    }  // the task's frame is gone before the group hears of it
    group->finished();
  }
};

void TaskGroup::spawn(Io& io, Task<void> task) {
  {
    std::lock_guard lock(mutex_);
    ++running_;
  }
  GroupMember::run(this, &io, std::move(task));
}

void TaskGroup::finished() {
  internal::Waiting joiner{};
  {
    std::lock_guard lock(mutex_);
    FGSYNC_ASSERT(running_ > 0);
    if (--running_ > 0) return;
    joiner = std::exchange(joiner_, {});
  }
  // Not under the lock: once the joiner runs, it may destroy this group, the mutex included.
  if (joiner.coroutine) joiner.io->post(joiner.coroutine);
}

struct DeadlineGuard::State {
  OperationAwaiter* sleep = nullptr;  // while the coroutine sleeps
  bool cancelled = false;
  bool expired = false;
  std::function<void()> expire;
};

struct DeadlineCoroutine {
  static Detached run(Io* io, TimePoint deadline, std::shared_ptr<DeadlineGuard::State> state) {
    OperationAwaiter sleep(*io, deadline);
    state->sleep = &sleep;
    (void)co_await sleep;
    state->sleep = nullptr;
    if (state->cancelled) co_return;
    state->expired = true;
    state->expire();
  }
};

DeadlineGuard::DeadlineGuard(Io& io, TimePoint deadline, std::function<void()> expire)
    : io_(io), state_(std::make_shared<State>()) {
  state_->expire = std::move(expire);
  DeadlineCoroutine::run(&io, deadline, state_);
}

DeadlineGuard::~DeadlineGuard() {
  state_->cancelled = true;
  if (state_->sleep) io_.cancel_sleep(state_->sleep->operation);
}

bool DeadlineGuard::expired() const { return state_->expired; }

}  // namespace fgsync::io
