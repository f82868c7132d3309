// Busy time and bytes per stage, counted where the work is done. Thread-safe and cheap enough to be
// always on: two clock readings and two relaxed additions per piece of work.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "fgsync/report.h"
#include "io/io.h"

namespace fgsync::transport {

class StageMeter {
 public:
  explicit StageMeter(io::Environment& environment) : environment_(environment) {}
  void add(Stage stage, io::Duration busy, std::uint64_t bytes) {
    auto& counter = counters_[std::size_t(stage)];
    counter.nanoseconds.fetch_add(std::uint64_t(busy.count()), std::memory_order_relaxed);
    counter.bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  io::TimePoint now() const { return environment_.now(); }
  StageFigures figures(Stage stage) const {
    const auto& counter = counters_[std::size_t(stage)];
    return {double(counter.nanoseconds.load(std::memory_order_relaxed)) / 1e9,
            counter.bytes.load(std::memory_order_relaxed)};
  }
  // Bytes of all stages: the ground of heartbeats and --timeout.
  std::uint64_t progress() const {
    std::uint64_t sum = 0;
    for (const auto& counter : counters_) sum += counter.bytes.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  struct Counter {
    std::atomic<std::uint64_t> nanoseconds{0};
    std::atomic<std::uint64_t> bytes{0};
  };
  io::Environment& environment_;
  std::array<Counter, kStageCount> counters_;
};

// Measures from its construction until stop() or its end.
class StageTimer {
 public:
  StageTimer(StageMeter& meter, Stage stage, std::uint64_t bytes)
      : meter_(meter), stage_(stage), bytes_(bytes), start_(meter.now()) {}
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;
  ~StageTimer() { stop(); }
  void set_bytes(std::uint64_t bytes) { bytes_ = bytes; }
  void stop() {
    if (stopped_) return;
    stopped_ = true;
    meter_.add(stage_, meter_.now() - start_, bytes_);
  }

 private:
  StageMeter& meter_;
  const Stage stage_;
  std::uint64_t bytes_;
  const io::TimePoint start_;
  bool stopped_ = false;
};

}  // namespace fgsync::transport
