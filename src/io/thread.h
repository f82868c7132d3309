// A named thread that takes no signals, so that they all reach the main thread. Unlike std::thread
// it reports that it could not be started (a container's limit on processes) instead of throwing.
#pragma once

#include <pthread.h>

#include <functional>
#include <memory>
#include <string>

#include "fgsync/status.h"

namespace fgsync::io {

// Joins when it goes away; the owner has told the body to end by then.
class Thread {
 public:
  // `name` is cut at 15 characters, the kernel's bound.
  static Result<Thread> start(const std::string& name, std::function<void()> body);
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&&) = delete;
  ~Thread();

 private:
  struct Start;
  explicit Thread(pthread_t thread) : thread_(thread), joinable_(true) {}
  static void* run(void* start);

  pthread_t thread_;
  bool joinable_;
};

}  // namespace fgsync::io
