// A worker without threads and a clock that stands still until everybody waits for it: what a test
// of timing runs on.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <vector>

#include "io/io.h"
#include "io/sync.h"

namespace fgsync::testing {

// The clock, and a chance that is always the same; nothing else is asked for.
class ManualEnvironment final : public io::Environment {
 public:
  std::byte chance{0};
  io::TimePoint now() override { return now_; }
  void advance_to(io::TimePoint time) { now_ = std::max(now_, time); }
  std::chrono::system_clock::time_point wall_clock() override { return {}; }
  void random_bytes(std::span<std::byte> bytes) override {
    std::fill(bytes.begin(), bytes.end(), chance);
  }
  std::array<std::byte, 16> host_identity() override { return {}; }
  double cpu_seconds() override { return 0; }
  std::uint64_t peak_memory_bytes() override { return 0; }
  std::size_t usable_cores() override { return 1; }
  bool has_aes() override { return false; }
  io::FileSystem& files() override { std::abort(); }
  io::Network& network() override { std::abort(); }

 private:
  io::TimePoint now_{std::chrono::hours(1)};
};

// Sleeps and jobs only. One thread.
class ManualIo final : public io::Io {
 public:
  void submit(io::Operation& operation) override {
    if (operation.kind == io::Operation::Kind::kSleep) {
      sleeping_.push_back(&operation);
      return;
    }
    ASSERT_EQ(operation.kind, io::Operation::Kind::kRun);
    operation.job();
    post(operation.waiter);
  }
  void cancel_sleep(io::Operation& operation) override {
    if (std::erase(sleeping_, &operation) > 0) wake(operation, -ECANCELED);
  }
  void post(std::coroutine_handle<> coroutine) override { ready_.push_back(coroutine); }
  void register_region(std::span<std::byte>) override {}
  ManualEnvironment& environment() override { return environment_; }

  // Runs what can run; the clock does not move.
  void run_ready() {
    while (!ready_.empty()) {
      const std::coroutine_handle<> next = ready_.front();
      ready_.pop_front();
      next.resume();
    }
  }
  // Runs what can run until `time`, the clock jumping from one sleeper to the next.
  void run_until(io::TimePoint time) {
    while (true) {
      run_ready();
      const auto first = std::min_element(
          sleeping_.begin(), sleeping_.end(),
          [](const auto* one, const auto* other) { return one->deadline < other->deadline; });
      if (first == sleeping_.end() || (*first)->deadline > time) break;
      io::Operation* const operation = *first;
      sleeping_.erase(first);
      environment_.advance_to(operation->deadline);
      wake(*operation, 0);
    }
    environment_.advance_to(time);
  }
  void run_for(io::Duration time) { run_until(environment_.now() + time); }

 private:
  void wake(io::Operation& operation, std::int64_t result) {
    operation.result = result;
    post(operation.waiter);
  }

  ManualEnvironment environment_;
  std::deque<std::coroutine_handle<>> ready_;
  std::vector<io::Operation*> sleeping_;
};

}  // namespace fgsync::testing
