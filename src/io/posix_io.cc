#include "io/posix_io.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <limits>

#include "base/assert.h"
#include "io/operation_steps.h"

namespace fgsync::io {
namespace {

// Completions collected by one call; more wait for the next round, which is soon.
constexpr int kEventsMax = 64;

// Operations that wait for the same readiness, first come, first served: pieces of two sends never
// mix.
class WaitQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  Operation* front() const { return first_; }
  void push(Operation& operation) {
    operation.next = nullptr;
    (empty() ? first_ : last_->next) = &operation;
    last_ = &operation;
  }
  Operation& pop() {
    Operation& operation = *first_;
    first_ = operation.next;
    return operation;
  }

 private:
  Operation* first_ = nullptr;
  Operation* last_ = nullptr;
};

std::int64_t would_block_or_error() { return errno == EWOULDBLOCK ? -EAGAIN : -errno; }

// Each of these gives the operation's result, or -EAGAIN when it has to wait.

std::int64_t try_accept(Operation& operation) {
  for (;;) {
    const int descriptor = ::accept4(operation.descriptor, nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor >= 0) return descriptor;
    if (errno != EINTR) return would_block_or_error();
  }
}

std::int64_t try_transfer(Operation& operation) {
  const bool receiving = operation.kind == Operation::Kind::kReceive;
  const int flags = message_flags(operation) | MSG_DONTWAIT;
  while (operation.vector_count > 0) {
    msghdr message{};
    message.msg_iov = operation.vectors;
    message.msg_iovlen = static_cast<std::size_t>(operation.vector_count);
    const ssize_t count = receiving ? ::recvmsg(operation.descriptor, &message, flags)
                                    : ::sendmsg(operation.descriptor, &message, flags);
    if (count < 0) {
      if (errno == EINTR) continue;
      return would_block_or_error();
    }
    if (receiving && count == 0) break;
    if (absorb(operation, static_cast<std::size_t>(count))) break;
  }
  return static_cast<std::int64_t>(operation.transferred);
}

// Once the descriptor has polled as ready.
std::int64_t retry(Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::kAccept:
      return try_accept(operation);
    case Operation::Kind::kConnect:
      return end_connect(operation);
    default:
      return try_transfer(operation);
  }
}

class PosixIo final : public Reactor {
 public:
  PosixIo(Environment& environment, BlockingPool& blocking_pool, UniqueFd wake, UniqueFd epoll)
      : Reactor(environment, blocking_pool, std::move(wake)), epoll_(std::move(epoll)) {}

 private:
  struct Waiting {
    WaitQueue readers;
    WaitQueue writers;
    // Whether the descriptor is probably in the epoll set. Its number may since have been closed,
    // which takes it out, and used for another file: only a guess which call to try first.
    bool registered = false;
  };

  void start(Operation& operation) override;
  void wait(std::optional<Duration> timeout) override;
  void wait_until_ready(Waiting& waiting, WaitQueue& queue, Operation& operation);
  void serve(int descriptor, std::uint32_t events);
  void serve_queue(WaitQueue& queue);
  int arm(int descriptor, Waiting& waiting);
  void fail_all(WaitQueue& queue, int error);

  const UniqueFd epoll_;
  std::vector<Waiting> waiting_;  // by descriptor
};

void PosixIo::start(Operation& operation) {
  using Kind = Operation::Kind;
  if (operation.kind == Kind::kRead || operation.kind == Kind::kWrite) {
    blocking_pool().submit(*this, operation);
    return;
  }
  const auto descriptor = static_cast<std::size_t>(operation.descriptor);
  if (descriptor >= waiting_.size()) waiting_.resize(descriptor + 1);
  Waiting& waiting = waiting_[descriptor];
  const bool reading = operation.kind == Kind::kAccept || operation.kind == Kind::kReceive;
  WaitQueue& queue = reading ? waiting.readers : waiting.writers;
  if (!queue.empty()) {
    queue.push(operation);
    return;
  }
  std::int64_t result = 0;
  if (operation.kind == Kind::kConnect) {
    result = begin_connect(operation);
    if (result == -EINPROGRESS) result = -EAGAIN;
  } else {
    if (operation.kind == Kind::kAccept) set_nonblocking(operation.descriptor, true);
    result = retry(operation);
  }
  if (result != -EAGAIN) {
    complete(operation, result);
    return;
  }
  wait_until_ready(waiting, queue, operation);
}

void PosixIo::wait_until_ready(Waiting& waiting, WaitQueue& queue, Operation& operation) {
  queue.push(operation);
  const int error = arm(operation.descriptor, waiting);
  if (error != 0) fail_all(queue, error);
}

// One event at most comes for each arming, so a descriptor that nobody waits for stays silent.
int PosixIo::arm(int descriptor, Waiting& waiting) {
  epoll_event event{};
  event.data.fd = descriptor;
  event.events = EPOLLONESHOT;
  if (!waiting.readers.empty()) event.events |= EPOLLIN | EPOLLRDHUP;
  if (!waiting.writers.empty()) event.events |= EPOLLOUT;
  const int first = waiting.registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  const int second = waiting.registered ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  waiting.registered = true;
  if (::epoll_ctl(epoll_.get(), first, descriptor, &event) == 0) return 0;
  if (errno != ENOENT && errno != EEXIST) return errno;
  return ::epoll_ctl(epoll_.get(), second, descriptor, &event) == 0 ? 0 : errno;
}

void PosixIo::fail_all(WaitQueue& queue, int error) {
  while (!queue.empty()) complete(queue.pop(), -error);
}

void PosixIo::wait(std::optional<Duration> timeout) {
  int milliseconds = -1;
  if (timeout) {
    // Rounded up: a sleep never ends early.
    const auto whole = std::chrono::ceil<std::chrono::milliseconds>(*timeout).count();
    milliseconds = static_cast<int>(std::min<std::int64_t>(whole, std::numeric_limits<int>::max()));
  }
  std::array<epoll_event, kEventsMax> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), kEventsMax, milliseconds);
  FGSYNC_ASSERT(count >= 0 || errno == EINTR);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.fd == wake_descriptor()) {
      std::uint64_t wakes = 0;
      (void)::read(wake_descriptor(), &wakes, sizeof wakes);
    } else {
      serve(event.data.fd, event.events);
    }
  }
}

void PosixIo::serve(int descriptor, std::uint32_t events) {
  Waiting& waiting = waiting_[static_cast<std::size_t>(descriptor)];
  const bool broken = (events & (EPOLLHUP | EPOLLERR)) != 0;
  if (broken || (events & (EPOLLIN | EPOLLRDHUP)) != 0) serve_queue(waiting.readers);
  if (broken || (events & EPOLLOUT) != 0) serve_queue(waiting.writers);
  if (waiting.readers.empty() && waiting.writers.empty()) return;
  const int error = arm(descriptor, waiting);
  if (error == 0) return;
  fail_all(waiting.readers, error);
  fail_all(waiting.writers, error);
}

void PosixIo::serve_queue(WaitQueue& queue) {
  while (!queue.empty()) {
    const std::int64_t result = retry(*queue.front());
    if (result == -EAGAIN) return;
    complete(queue.pop(), result);
  }
}

}  // namespace

Result<std::unique_ptr<Reactor>> make_posix_io(Environment& environment,
                                               BlockingPool& blocking_pool) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return Status::from_errno(errno, "making an epoll set");
  Result<UniqueFd> wake = make_wake_descriptor();
  if (!wake.ok()) return wake.status();
  epoll_event event{};
  event.data.fd = wake->get();
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake->get(), &event) != 0) {
    return Status::from_errno(errno, "adding an eventfd to an epoll set");
  }
  return std::unique_ptr<Reactor>(
      new PosixIo(environment, blocking_pool, std::move(*wake), std::move(epoll)));
}

}  // namespace fgsync::io
