#include "io/thread.h"

#include <csignal>
#include <utility>

namespace fgsync::io {

struct Thread::Start {
  std::string name;
  std::function<void()> body;
};

Result<Thread> Thread::start(const std::string& name, std::function<void()> body) {
  auto start = std::make_unique<Start>(Start{name.substr(0, 15), std::move(body)});
  // The new thread inherits the mask, so there is no moment in which it could take a signal.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const int error = pthread_create(&thread, nullptr, &Thread::run, start.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return Status::from_errno(error, "starting a thread");
  (void)start.release();  // the thread owns it now
  return Thread(thread);
}

Thread::Thread(Thread&& other) noexcept
    : thread_(other.thread_), joinable_(std::exchange(other.joinable_, false)) {}

Thread::~Thread() {
  if (joinable_) pthread_join(thread_, nullptr);
}

void* Thread::run(void* start) {
  const std::unique_ptr<Start> owned(static_cast<Start*>(start));
  pthread_setname_np(pthread_self(), owned->name.c_str());
  owned->body();
  return nullptr;
}

}  // namespace fgsync::io
