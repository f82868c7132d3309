// A repeated sleep that another coroutine of the same worker can end for good.
#pragma once

#include "io/io.h"

namespace fgsync::io {

class Pause {
 public:
  explicit Pause(Io& io) : io_(io) {}
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

  // True when the time is over, false when the pause was ended, now or before.
  Task<bool> sleep_for(Duration time) {
    if (ended_) co_return false;
    OperationAwaiter sleep(io_, io_.environment().now() + time);
    sleeping_ = &sleep;
    (void)co_await sleep;
    sleeping_ = nullptr;
    co_return !ended_;
  }
  void end() {
    ended_ = true;
    if (sleeping_) io_.cancel_sleep(sleeping_->operation);
  }

 private:
  Io& io_;
  OperationAwaiter* sleeping_ = nullptr;
  bool ended_ = false;
};

}  // namespace fgsync::io
