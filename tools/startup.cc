#include "startup.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace fgsync::tools {
namespace {

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP};

std::atomic<CancelToken*> cancel_on_signal = nullptr;
static_assert(std::atomic<CancelToken*>::is_always_lock_free);

// Only what signal-safety(7) allows: sigaction and a lock-free atomic.
void request_cancel(int) {
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (int signal : kEndingSignals) {
    struct sigaction current {};
    ::sigaction(signal, nullptr, &current);
    if (current.sa_handler == request_cancel) ::sigaction(signal, &by_default, nullptr);
  }
  cancel_on_signal.load(std::memory_order_relaxed)->request();
}

void nothing(int) {}

}  // namespace

void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
      // The lowest free number is `fd`, since those below it are open.
      (void)::open("/dev/null", O_RDWR);
    }
  }
}

void install_signal_actions(CancelToken& cancel) {
  cancel_on_signal.store(&cancel, std::memory_order_relaxed);
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  for (int signal : kEndingSignals) {
    struct sigaction inherited {};
    ::sigaction(signal, nullptr, &inherited);
    action.sa_handler = request_cancel;
    if (inherited.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
  // An empty action rather than SIG_IGN: programs that are started from here get the default back.
  action.sa_handler = nothing;
  ::sigaction(SIGPIPE, &action, nullptr);
}

}  // namespace fgsync::tools
