#include "io/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <limits>
#include <memory>

#include "base/assert.h"
#include "io/unique_fd.h"

namespace fgsync::io {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kReadBytes = 64 * 1024;  // a pipe's capacity, pipe(7)
constexpr std::chrono::milliseconds kExitPollInterval{5};
constexpr std::chrono::seconds kGraceAtEnd{1};
// What ssh(1) gives for a failure of its own: not taken for success.
constexpr int kExitUnknown = 255;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

// Above the standard descriptors: moving an end to 0 or 1 in the child must not run over the other
// one, should this process have been started with those closed.
Result<UniqueFd> above_standard(UniqueFd descriptor) {
  if (descriptor.get() > STDERR_FILENO) return descriptor;
  UniqueFd moved(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!moved) return Status::from_errno(errno, "making a pipe");
  return moved;
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno(errno, "making a pipe");
  UniqueFd read(ends[0]);
  UniqueFd write(ends[1]);
  Result<UniqueFd> high_read = above_standard(std::move(read));
  if (!high_read.ok()) return high_read.status();
  Result<UniqueFd> high_write = above_standard(std::move(write));
  if (!high_write.ok()) return high_write.status();
  return Pipe{std::move(*high_read), std::move(*high_write)};
}

// What posix_spawn is told: the pipe ends become the standard descriptors, and signals are as a
// fresh program expects them. The process group stays ours, so that the remote shell may ask for a
// password on the terminal.
class SpawnPlan {
 public:
  SpawnPlan(int child_input, int child_output) {
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    FGSYNC_ASSERT(::posix_spawn_file_actions_init(&actions_) == 0);
    FGSYNC_ASSERT(::posix_spawnattr_init(&attributes_) == 0);
    error_ = ::posix_spawn_file_actions_adddup2(&actions_, child_input, STDIN_FILENO);
    if (error_ == 0) {
      error_ = ::posix_spawn_file_actions_adddup2(&actions_, child_output, STDOUT_FILENO);
    }
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  // 0 or an errno, of the exec too.
  int spawn(const std::vector<std::string>& argv, pid_t& pid) {
    std::vector<char*> pointers;
    for (const std::string& argument : argv) {
      pointers.push_back(const_cast<char*>(argument.c_str()));  // POSIX: never written to
    }
    pointers.push_back(nullptr);
    if (error_ != 0) return error_;
    return ::posix_spawnp(&pid, pointers[0], &actions_, &attributes_, pointers.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  int error_ = 0;
};

// Keeps SIGPIPE from this thread while a pipe is written to, and takes it back out if the write
// raised it: the program's own disposition of the signal stays as it is.
class BrokenPipeGuard {
 public:
  BrokenPipeGuard() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  BrokenPipeGuard(const BrokenPipeGuard&) = delete;
  BrokenPipeGuard& operator=(const BrokenPipeGuard&) = delete;
  ~BrokenPipeGuard() {
    const timespec at_once{};
    if (!was_pending_) {
      while (::sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_ = false;
};

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

void close_descriptor(int& descriptor) {
  if (descriptor >= 0) ::close(std::exchange(descriptor, -1));
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& argv) {
  FGSYNC_ASSERT(!argv.empty());
  Result<Pipe> input = make_pipe();
  if (!input.ok()) return input.status();
  Result<Pipe> output = make_pipe();
  if (!output.ok()) return output.status();
  ChildProcess child;
  const int error = SpawnPlan(input->read.get(), output->write.get()).spawn(argv, child.pid_);
  if (error != 0) {
    child.pid_ = -1;
    return Status::from_errno(error, "starting " + argv[0]);
  }
  child.input_ = input->write.release();
  child.output_ = output->read.release();
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)),
      exit_status_(std::exchange(other.exit_status_, std::nullopt)) {}

ChildProcess::~ChildProcess() {
  close_input();
  close_descriptor(output_);
  if (pid_ < 0 || wait_for_exit(kGraceAtEnd)) return;
  ::kill(pid_, SIGTERM);
  if (wait_for_exit(kGraceAtEnd)) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Status ChildProcess::write_input(const std::string& text) {
  const BrokenPipeGuard guard;
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(input_, text.data() + written, text.size() - written);
    if (count < 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      return Status(ErrorCode::kConnectionLost,
                    Status::from_errno(error, "writing to the started program").message(), error);
    }
    written += static_cast<std::size_t>(count);
  }
  return Status();
}

Result<std::optional<std::vector<std::byte>>> ChildProcess::read_output(
    std::chrono::milliseconds wait) {
  using Output = std::optional<std::vector<std::byte>>;
  if (output_ < 0) return Output();
  const Clock::time_point deadline = Clock::now() + wait;
  for (;;) {
    pollfd readable{output_, POLLIN, 0};
    const int ready = ::poll(&readable, 1, milliseconds_until(deadline));
    if (ready == 0) return Output(std::in_place);
    if (ready < 0) {
      if (errno == EINTR) continue;
      return Status::from_errno(errno, "waiting for the started program");
    }
    std::vector<std::byte> bytes(kReadBytes);
    const ssize_t count = ::read(output_, bytes.data(), bytes.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return Status::from_errno(errno, "reading from the started program");
    }
    if (count == 0) {
      close_descriptor(output_);
      return Output();
    }
    bytes.resize(static_cast<std::size_t>(count));
    return Output(std::move(bytes));
  }
}

void ChildProcess::close_input() { close_descriptor(input_); }

std::optional<int> ChildProcess::wait_for_exit(std::chrono::milliseconds wait) {
  if (exit_status_ || pid_ < 0) return exit_status_;
  const Clock::time_point deadline = Clock::now() + wait;
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) {
      exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      return exit_status_;
    }
    if (ended < 0 && errno == ECHILD) {  // reaped elsewhere: how it ended is not known
      exit_status_ = kExitUnknown;
      return exit_status_;
    }
    if (Clock::now() >= deadline) return std::nullopt;
    // There is no call that waits for a child with a timeout and disturbs nobody's SIGCHLD.
    ::poll(nullptr, 0, std::min(milliseconds_until(deadline), int{kExitPollInterval.count()}));
  }
}

}  // namespace fgsync::io
