// The I/O seam. Everything outside the program is behind it: files (FileSystem), sockets (Network),
// the clock, randomness, and the threads that run workers. Code above never calls the kernel, reads
// a clock or starts a thread by itself; so a third implementation can simulate disk, network and
// time from one seed under the very code that runs in production.
//
// A worker is an Io: an executor for coroutines with the operations that take time. In production
// each has a thread and either an io_uring ring or an epoll set; in simulation all share one
// thread.
#pragma once

#include <sys/uio.h>

#include <array>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "io/network.h"
#include "io/task.h"

namespace fgsync::io {

// Monotonic time since an arbitrary origin.
using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// What is outside and does not belong to one worker. Thread-safe.
class Environment {
 public:
  virtual ~Environment() = default;
  virtual TimePoint now() = 0;
  virtual std::chrono::system_clock::time_point wall_clock() = 0;
  virtual void random_bytes(std::span<std::byte> bytes) = 0;  // fit for keys
  // The same for everything on one running kernel (its boot id), another one elsewhere and after a
  // reboot.
  virtual std::array<std::byte, 16> host_identity() = 0;
  // User and system seconds of this process so far, and its peak memory.
  virtual double cpu_seconds() = 0;
  virtual std::uint64_t peak_memory_bytes() = 0;
  // What the machine has for it: cores that it may run on, and instructions for AES.
  virtual std::size_t usable_cores() = 0;
  virtual bool has_aes() = 0;
  virtual FileSystem& files() = 0;
  // For reading alone: a name stands for what its symlink leads to, wherever that is. Where there
  // is none of the kind, files().
  virtual FileSystem& files_through_links() { return files(); }
  virtual Network& network() = 0;
};

// One submitted operation. It lives in the frame of the coroutine that awaits it, so nothing is
// allocated. The engine keeps a pointer to it until its completion and never touches it afterwards.
struct Operation {
  enum class Kind : std::uint8_t {
    kAccept,   // descriptor: listener -> result: the new descriptor
    kConnect,  // descriptor, address
    kReceive,  // descriptor, vectors[0] -> bytes, 0 at the peer's end; fills the vector wholly if
               // wait_all
    kSend,     // descriptor, vectors -> bytes; everything, unless the connection breaks
    kRead,     // descriptor, vectors[0], offset -> bytes; for files open for direct I/O
    kWrite,    // descriptor, vectors[0], offset -> bytes; for files open for direct I/O
    kSleep,    // until deadline; cancellable
    kRun,      // job, on the blocking pool
  };
  static constexpr int kVectorsMax = 3;

  explicit Operation(Kind operation_kind) : kind(operation_kind) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  const Kind kind;
  bool wait_all = false;
  bool more_follows = false;  // kSend: a hint that another send comes at once
  int descriptor = -1;
  int vector_count = 0;
  iovec vectors[kVectorsMax] = {};
  std::uint64_t offset = 0;
  TimePoint deadline{};
  const SocketAddress* address = nullptr;
  std::function<void()> job;

  // Set by the engine before `waiter` is resumed: a count or descriptor, or a negated errno.
  std::int64_t result = 0;
  std::coroutine_handle<> waiter;

  // The engine's own.
  std::uint64_t transferred = 0;
  std::size_t timer_index = 0;
  Operation* next = nullptr;
  bool in_flight = false;
};

class Io {
 public:
  virtual ~Io() = default;
  // Starts the operation; its waiter is resumed on this worker, never from within submit. This
  // worker only.
  virtual void submit(Operation& operation) = 0;
  // Ends a sleep early with -ECANCELED; nothing if it is over. This worker only.
  virtual void cancel_sleep(Operation& operation) = 0;
  // Resumes a coroutine on this worker, soon. Any thread.
  virtual void post(std::coroutine_handle<> coroutine) = 0;
  // Lets direct reads and writes of this memory skip the page pinning, where the engine and the
  // locked-memory limit allow; silently does nothing otherwise. Takes the place of what was
  // registered before. This worker only, while no direct read or write is under way.
  virtual void register_region(std::span<std::byte> region) = 0;
  virtual Environment& environment() = 0;
};

// Awaiting one operation: `co_await` of it gives its result. Use the functions below.
class OperationAwaiter {
 public:
  OperationAwaiter(Io& io, Operation::Kind kind) : operation(kind), io_(io) {}
  OperationAwaiter(Io& io, std::function<void()> job)
      : OperationAwaiter(io, Operation::Kind::kRun) {
    operation.job = std::move(job);
  }
  OperationAwaiter(Io& io, TimePoint deadline) : OperationAwaiter(io, Operation::Kind::kSleep) {
    operation.deadline = deadline;
  }
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    operation.waiter = waiter;
    io_.submit(operation);
  }
  std::int64_t await_resume() const noexcept { return operation.result; }

  Operation operation;

 private:
  Io& io_;
};

// The operations, each as one co_await. Failures come as kConnectionLost (sockets) with the errno's
// text.
Task<Result<Socket>> accept(Io& io, const Socket& listener);
Task<Status> connect(Io& io, const Socket& socket, const SocketAddress& peer);
// Exactly bytes.size() bytes, or kConnectionLost.
Task<Status> receive_exactly(Io& io, const Socket& socket, std::span<std::byte> bytes);
// At least one byte; 0 when the peer has closed.
Task<Result<std::size_t>> receive_some(Io& io, const Socket& socket, std::span<std::byte> bytes);
// Everything in up to three pieces, in one call where the kernel takes it.
Task<Status> send_all(Io& io, const Socket& socket, std::span<const std::byte> first,
                      std::span<const std::byte> second = {}, std::span<const std::byte> third = {},
                      bool more_follows = false);
// For files open for direct I/O, at depth. Reads may be short at the end of the file.
Task<Result<std::size_t>> read_direct(Io& io, const FileHandle& file, std::span<std::byte> bytes,
                                      std::uint64_t offset);
Task<Status> write_direct(Io& io, const FileHandle& file, std::span<const std::byte> bytes,
                          std::uint64_t offset);

// Runs `job`, a callable without arguments, on the blocking pool while the coroutine waits; then
// goes on, on this worker. A lambda written in place captures by reference (or plain values) only;
// one that owns something gets a name first. g++ 12 destroys such a temporary of a co_await
// expression twice (see task.h).
template <typename Job>
OperationAwaiter run_blocking(Io& io, Job&& job) {
  static_assert(std::is_lvalue_reference_v<Job> || std::is_trivially_destructible_v<Job>,
                "give the job a name before the co_await expression");
  return OperationAwaiter(io, std::function<void()>(std::forward<Job>(job)));
}

// Awaiting a job that may turn out not to need another thread.
class JobAwaiter : public OperationAwaiter {
 public:
  JobAwaiter(Io& io, bool may_block, std::function<void()> job)
      : OperationAwaiter(io, std::move(job)), may_block_(may_block) {}
  bool await_ready() const {
    if (!may_block_) operation.job();
    return !may_block_;
  }

 private:
  const bool may_block_;
};

// As run_blocking where the job may block; else here and now. The way to another thread and back
// costs two wake-ups, and takes what was just copied to another core's cache: with a tmpfs on both
// ends a sixth of the whole run on two cores.
template <typename Job>
JobAwaiter run_job(Io& io, bool may_block, Job&& job) {
  static_assert(std::is_lvalue_reference_v<Job> || std::is_trivially_destructible_v<Job>,
                "give the job a name before the co_await expression");
  return JobAwaiter(io, may_block, std::function<void()>(std::forward<Job>(job)));
}

// Waits until the deadline.
inline OperationAwaiter sleep_until(Io& io, TimePoint deadline) {
  return OperationAwaiter(io, deadline);
}

// Continues on another worker: `co_await resume_on(io)`.
struct ResumeOn {
  Io& io;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> coroutine) const { io.post(coroutine); }
  void await_resume() const noexcept {}
};
inline ResumeOn resume_on(Io& io) { return ResumeOn{io}; }

}  // namespace fgsync::io
