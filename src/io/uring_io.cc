// The only file that includes liburing. It keeps to what liburing 2.1 (Ubuntu 22.04) has.
#include "io/uring_io.h"

#include <liburing.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string>

#include "base/assert.h"
#include "io/operation_steps.h"

// Newer than the oldest headers that this builds with; the values are the kernel's
// (linux/io_uring.h).
#ifndef IORING_SETUP_COOP_TASKRUN
#define IORING_SETUP_COOP_TASKRUN (1U << 8)
#endif
#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif

namespace fgsync::io {
namespace {

// Operations handed over in one call. More may be in flight: the queue is flushed when it is full.
constexpr unsigned kSubmissionEntries = 256;
constexpr unsigned kSubmissionEntriesSmall = 32;
constexpr rlim_t kLockedMemoryScarce = 1 << 20;

// The largest buffer that the kernel registers as one piece (io_uring/rsrc.c).
constexpr std::size_t kRegisteredPieceMax = std::size_t{1} << 30;
// What one submission moves at most; lengths in the ring are 32 bits wide. The rest is submitted
// again.
constexpr std::size_t kPieceMax = std::size_t{1} << 30;

// Best first. Deferred task work runs completions only when the worker asks for them, with no
// interrupts and no shared ring (6.1); without it, cooperative task work at least avoids the
// interrupts (5.19). A kernel that does not know a flag says EINVAL. Every ring starts disabled, so
// that the worker's thread, not the one that made it, becomes its issuer.
constexpr unsigned kSetupFlags[] = {
    IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
        IORING_SETUP_COOP_TASKRUN,
    IORING_SETUP_R_DISABLED | IORING_SETUP_COOP_TASKRUN,
    IORING_SETUP_R_DISABLED,
};

constexpr int kNeededOpcodes[] = {
    IORING_OP_ACCEPT,     IORING_OP_POLL_ADD, IORING_OP_RECV,
    IORING_OP_SEND,       IORING_OP_SENDMSG,  IORING_OP_READ,
    IORING_OP_READ_FIXED, IORING_OP_WRITE,    IORING_OP_WRITE_FIXED,
};

Status unsupported(int error, const std::string& doing) {
  std::string message = Status::from_errno(error, doing).message();
  if (error == EPERM) {
    message +=
        " (refused by the container's seccomp profile, as Docker's default one does, or by the "
        "sysctl "
        "kernel.io_uring_disabled)";
  } else if (error == ENOSYS) {
    message += " (this kernel is built without io_uring, or a filter hides it)";
  } else if (error == ENOMEM) {
    message += " (the locked-memory limit, ulimit -l, may be too low)";
  }
  return Status(ErrorCode::kUnsupported, std::move(message), error);
}

int set_up_ring(io_uring& ring, unsigned entries) {
  int error = EINVAL;
  for (const unsigned flags : kSetupFlags) {
    io_uring_params params{};
    params.flags = flags;
    error = -io_uring_queue_init_params(entries, &ring, &params);
    if (error != EINVAL) break;
  }
  return error;
}

Status make_ring(io_uring& ring) {
  // Rings count as locked memory on some kernels, and all of a user's processes together: with
  // 64 KiB of it several small ones still fit.
  rlimit locked{};
  const bool is_scarce =
      ::getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur < kLockedMemoryScarce;
  int error = is_scarce ? ENOMEM : set_up_ring(ring, kSubmissionEntries);
  if (error == ENOMEM) error = set_up_ring(ring, kSubmissionEntriesSmall);
  if (error != 0) return unsupported(error, "io_uring_setup");
  // Waiting with a timeout and no extra request (5.11).
  if ((ring.features & IORING_FEAT_EXT_ARG) == 0) {
    io_uring_queue_exit(&ring);
    return Status(ErrorCode::kUnsupported, "io_uring: this kernel is too old, 5.11 is needed");
  }
  return Status();
}

}  // namespace

Status probe_uring() {
  io_uring ring{};
  FGSYNC_RETURN_IF_ERROR(make_ring(ring));
  io_uring_probe* const probe = io_uring_get_probe_ring(&ring);
  bool complete = probe != nullptr;
  for (const int opcode : kNeededOpcodes) {
    complete = complete && io_uring_opcode_supported(probe, opcode) != 0;
  }
  io_uring_free_probe(probe);
  io_uring_queue_exit(&ring);
  if (complete) return Status();
  return Status(ErrorCode::kUnsupported, "io_uring: this kernel lacks operations that are needed");
}

namespace {

class UringIo final : public Reactor {
 public:
  UringIo(Environment& environment, BlockingPool& blocking_pool, UniqueFd wake,
          const io_uring& ring)
      : Reactor(environment, blocking_pool, std::move(wake)), ring_(ring) {}
  ~UringIo() override { io_uring_queue_exit(&ring_); }

  void register_region(std::span<std::byte> region) override;

 private:
  void enter() override;
  void start(Operation& operation) override;
  void wait(std::optional<Duration> timeout) override;

  io_uring_sqe* next_entry();
  void enqueue(Operation& operation);
  void prepare(io_uring_sqe* entry, Operation& operation);
  void prepare_send(io_uring_sqe* entry, Operation& operation);
  void prepare_file(io_uring_sqe* entry, const Operation& operation);
  int registered_index(const iovec& piece) const;
  void watch_wake();
  void flush_backlog();
  void submit_entries();
  void collect();
  void on_completion(Operation& operation, int result);
  void on_transfer(Operation& operation, int result);

  io_uring ring_;
  std::uint64_t wakes_ = 0;  // the eventfd is read into it; its address marks that completion
  bool watching_wake_ = false;
  std::vector<iovec> registered_;
  // The header of a send in several pieces must stay until the entry is handed over: one per entry.
  msghdr messages_[kSubmissionEntries];
  // Operations that found the submission queue full and the kernel unwilling to empty it.
  std::deque<Operation*> backlog_;
};

void UringIo::enter() {
  // By the system call: liburing 2.3 declares io_uring_enable_rings but its shared library does not
  // export it. It can only fail for a ring that is enabled already (io_uring_register(2)).
  FGSYNC_ASSERT(::syscall(SYS_io_uring_register, ring_.ring_fd, IORING_REGISTER_ENABLE_RINGS,
                          nullptr, 0) == 0);
  watch_wake();
}

void UringIo::register_region(std::span<std::byte> region) {
  // The kernel holds on to the pages of memory that is gone: other memory at the same address must
  // not be taken for it.
  if (!registered_.empty()) (void)io_uring_unregister_buffers(&ring_);
  registered_.clear();
  std::vector<iovec> pieces;
  while (!region.empty()) {
    const std::size_t count = std::min(region.size(), kRegisteredPieceMax);
    pieces.push_back({region.data(), count});
    region = region.subspan(count);
  }
  const auto count = static_cast<unsigned>(pieces.size());
  // Charged to the locked-memory limit; refused, direct I/O pins its pages per operation instead.
  if (io_uring_register_buffers(&ring_, pieces.data(), count) == 0) registered_ = std::move(pieces);
}

void UringIo::start(Operation& operation) {
  if (operation.kind == Operation::Kind::kConnect) {
    // Begun here and now, so that a shutdown that comes before the next submission finds it.
    const std::int64_t result = begin_connect(operation);
    if (result != -EINPROGRESS) {
      complete(operation, result);
      return;
    }
  }
  enqueue(operation);
}

void UringIo::enqueue(Operation& operation) {
  if (!backlog_.empty()) {
    backlog_.push_back(&operation);
    return;
  }
  io_uring_sqe* const entry = next_entry();
  if (entry == nullptr) {
    backlog_.push_back(&operation);
    return;
  }
  prepare(entry, operation);
}

io_uring_sqe* UringIo::next_entry() {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  if (entry != nullptr) return entry;
  (void)io_uring_submit(&ring_);
  return io_uring_get_sqe(&ring_);
}

void UringIo::prepare(io_uring_sqe* entry, Operation& operation) {
  const int descriptor = operation.descriptor;
  switch (operation.kind) {
    case Operation::Kind::kAccept:
      io_uring_prep_accept(entry, descriptor, nullptr, nullptr, SOCK_CLOEXEC);
      break;
    case Operation::Kind::kConnect:
      io_uring_prep_poll_add(entry, descriptor, POLLOUT);
      break;
    case Operation::Kind::kReceive:
      io_uring_prep_recv(entry, descriptor, operation.vectors[0].iov_base,
                         std::min(operation.vectors[0].iov_len, kPieceMax),
                         message_flags(operation));
      break;
    case Operation::Kind::kSend:
      prepare_send(entry, operation);
      break;
    default:
      prepare_file(entry, operation);
  }
  io_uring_sqe_set_data(entry, &operation);
}

void UringIo::prepare_send(io_uring_sqe* entry, Operation& operation) {
  // The kernel then goes on by itself after a partial send (5.19); before, the rest is submitted
  // again.
  const int flags = message_flags(operation) | MSG_WAITALL;
  if (operation.vector_count == 1) {
    const iovec& piece = operation.vectors[0];
    io_uring_prep_send(entry, operation.descriptor, piece.iov_base,
                       std::min(piece.iov_len, kPieceMax), flags);
    return;
  }
  msghdr& message = messages_[entry - ring_.sq.sqes];
  message = {};
  message.msg_iov = operation.vectors;
  message.msg_iovlen = static_cast<std::size_t>(operation.vector_count);
  io_uring_prep_sendmsg(entry, operation.descriptor, &message, static_cast<unsigned>(flags));
}

void UringIo::prepare_file(io_uring_sqe* entry, const Operation& operation) {
  const iovec& piece = operation.vectors[0];
  const auto count = static_cast<unsigned>(std::min(piece.iov_len, kPieceMax));
  const std::uint64_t offset = operation.offset + operation.transferred;
  const int index = registered_index(piece);
  if (operation.kind == Operation::Kind::kRead) {
    if (index >= 0) {
      io_uring_prep_read_fixed(entry, operation.descriptor, piece.iov_base, count, offset, index);
    } else {
      io_uring_prep_read(entry, operation.descriptor, piece.iov_base, count, offset);
    }
  } else if (index >= 0) {
    io_uring_prep_write_fixed(entry, operation.descriptor, piece.iov_base, count, offset, index);
  } else {
    io_uring_prep_write(entry, operation.descriptor, piece.iov_base, count, offset);
  }
}

// Which registered piece holds all of this memory; -1: none.
int UringIo::registered_index(const iovec& piece) const {
  const auto* const begin = static_cast<const std::byte*>(piece.iov_base);
  for (std::size_t i = 0; i < registered_.size(); ++i) {
    const auto* const first = static_cast<const std::byte*>(registered_[i].iov_base);
    const std::byte* const last = first + registered_[i].iov_len;
    if (begin >= first && begin < last && piece.iov_len <= static_cast<std::size_t>(last - begin)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

void UringIo::watch_wake() {
  io_uring_sqe* const entry = next_entry();
  if (entry == nullptr) return;  // tried again before the next wait
  io_uring_prep_read(entry, wake_descriptor(), &wakes_, sizeof wakes_, 0);
  io_uring_sqe_set_data(entry, &wakes_);
  watching_wake_ = true;
}

void UringIo::flush_backlog() {
  while (!backlog_.empty()) {
    io_uring_sqe* const entry = next_entry();
    if (entry == nullptr) return;
    prepare(entry, *backlog_.front());
    backlog_.pop_front();
  }
}

void UringIo::wait(std::optional<Duration> timeout) {
  if (!watching_wake_) watch_wake();
  flush_backlog();
  // What could not be handed over is waiting for room among the completions, so there are some to
  // collect.
  if (!watching_wake_ || !backlog_.empty()) timeout = Duration::zero();
  if (!timeout) {
    (void)io_uring_submit_and_wait(&ring_, 1);
  } else {
    if (io_uring_sq_ready(&ring_) > 0) (void)io_uring_submit(&ring_);
    if (io_uring_cq_ready(&ring_) == 0) {
      const auto seconds = std::chrono::floor<std::chrono::seconds>(*timeout);
      __kernel_timespec limit{};
      limit.tv_sec = seconds.count();
      limit.tv_nsec = (*timeout - seconds).count();
      io_uring_cqe* first = nullptr;
      (void)io_uring_wait_cqes(&ring_, &first, 1, &limit, nullptr);
    }
  }
  collect();
}

// Errors of the calls in `wait` are not lost: an interrupted or refused call leaves its entries
// where they are for the next round, and each operation's own outcome comes as a completion.
void UringIo::collect() {
  io_uring_cqe* completion = nullptr;
  while (io_uring_peek_cqe(&ring_, &completion) == 0 && completion != nullptr) {
    void* const mark = io_uring_cqe_get_data(completion);
    const int result = completion->res;
    io_uring_cqe_seen(&ring_, completion);
    if (mark == &wakes_) {
      watching_wake_ = false;
      watch_wake();
    } else {
      on_completion(*static_cast<Operation*>(mark), result);
    }
  }
}

void UringIo::on_completion(Operation& operation, int result) {
  if (result == -EAGAIN || result == -EINTR) {
    // Some file systems and kernels refuse to wait (seen with 5.10); a socket may have been made
    // non-blocking.
    if (operation.kind != Operation::Kind::kRead && operation.kind != Operation::Kind::kWrite) {
      set_nonblocking(operation.descriptor, false);
    }
    enqueue(operation);
    return;
  }
  switch (operation.kind) {
    case Operation::Kind::kAccept:
      complete(operation, result);
      break;
    case Operation::Kind::kConnect:
      complete(operation, result < 0 ? result : end_connect(operation));
      break;
    default:
      on_transfer(operation, result);
  }
}

void UringIo::on_transfer(Operation& operation, int result) {
  if (result < 0) {
    complete(operation, result);
    return;
  }
  if (result == 0) {
    const bool ended =
        operation.kind == Operation::Kind::kReceive || operation.kind == Operation::Kind::kRead;
    complete(operation, ended ? static_cast<std::int64_t>(operation.transferred) : -EIO);
    return;
  }
  if (absorb(operation, static_cast<std::size_t>(result))) {
    complete(operation, static_cast<std::int64_t>(operation.transferred));
  } else {
    enqueue(operation);  // a short completion is legal, also on files
  }
}

}  // namespace

Result<std::unique_ptr<Reactor>> make_uring_io(Environment& environment,
                                               BlockingPool& blocking_pool) {
  Result<UniqueFd> wake = make_wake_descriptor();
  if (!wake.ok()) return wake.status();
  io_uring ring{};
  FGSYNC_RETURN_IF_ERROR(make_ring(ring));
  return std::unique_ptr<Reactor>(new UringIo(environment, blocking_pool, std::move(*wake), ring));
}

}  // namespace fgsync::io
