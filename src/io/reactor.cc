#include "io/reactor.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "base/assert.h"

namespace fgsync::io {
namespace {

thread_local Reactor* current_reactor = nullptr;

}  // namespace

// In blocking mode: a ring's read of it must wait, and an epoll set reads it only when it is
// readable.
Result<UniqueFd> make_wake_descriptor() {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  if (!wake) return Status::from_errno(errno, "making an eventfd");
  return wake;
}

Reactor::Reactor(Environment& environment, BlockingPool& blocking_pool, UniqueFd wake)
    : environment_(environment), blocking_pool_(blocking_pool), wake_(std::move(wake)) {}

void Reactor::submit(Operation& operation) {
  FGSYNC_ASSERT(current_reactor == this);
  FGSYNC_ASSERT(!operation.in_flight);
  operation.in_flight = true;
  operation.transferred = 0;
  switch (operation.kind) {
    case Operation::Kind::kSleep:
      sleeps_.add(operation);
      break;
    case Operation::Kind::kRun:
      blocking_pool_.submit(*this, operation);
      break;
    default:
      start(operation);
  }
}

void Reactor::cancel_sleep(Operation& operation) {
  FGSYNC_ASSERT(current_reactor == this);
  if (sleeps_.remove(operation)) complete(operation, -ECANCELED);
}

void Reactor::post(std::coroutine_handle<> coroutine) {
  if (current_reactor == this) {
    ready_.push_back(coroutine);
    return;
  }
  bool was_asleep = false;
  {
    std::lock_guard lock(mutex_);
    inbox_.push_back(coroutine);
    was_asleep = std::exchange(asleep_, false);
  }
  if (was_asleep) wake();
}

void Reactor::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    asleep_ = false;
  }
  wake();
}

void Reactor::wake() {
  const std::uint64_t one = 1;
  while (::write(wake_.get(), &one, sizeof one) < 0) FGSYNC_ASSERT(errno == EINTR);
}

void Reactor::complete(Operation& operation, std::int64_t result) {
  operation.result = result;
  operation.in_flight = false;
  ready_.push_back(operation.waiter);
}

void Reactor::run() {
  FGSYNC_ASSERT(current_reactor == nullptr);
  current_reactor = this;
  enter();
  for (;;) {
    take_inbox();
    expire_sleeps();
    run_ready();
    if (finished()) break;
    wait_for_completions();
  }
  current_reactor = nullptr;
}

void Reactor::take_inbox() {
  std::lock_guard lock(mutex_);
  ready_.insert(ready_.end(), inbox_.begin(), inbox_.end());
  inbox_.clear();
}

void Reactor::expire_sleeps() {
  if (!sleeps_.next_deadline()) return;
  const TimePoint now = environment_.now();
  while (Operation* const operation = sleeps_.pop_expired(now)) complete(*operation, 0);
}

// One round: what becomes ready meanwhile waits for the next one.
void Reactor::run_ready() {
  running_.swap(ready_);
  for (const std::coroutine_handle<> coroutine : running_) coroutine.resume();
  running_.clear();
}

bool Reactor::finished() {
  std::lock_guard lock(mutex_);
  return stopped_ && ready_.empty() && inbox_.empty();
}

void Reactor::wait_for_completions() {
  std::optional<Duration> timeout;
  if (!ready_.empty()) {
    timeout = Duration::zero();
  } else {
    if (const auto deadline = sleeps_.next_deadline()) {
      timeout = std::max(Duration::zero(), *deadline - environment_.now());
    }
    std::lock_guard lock(mutex_);
    if (inbox_.empty()) {
      asleep_ = true;
    } else {
      timeout = Duration::zero();
    }
  }
  wait(timeout);
  std::lock_guard lock(mutex_);
  asleep_ = false;
}

}  // namespace fgsync::io
