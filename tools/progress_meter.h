// From snapshots to what is worth showing: the rate now, the time left, and a percentage that never
// runs backwards. No clock: time is the snapshots' own.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "fgsync/report.h"

namespace fgsync::tools {

struct ProgressView {
  ProgressSnapshot snapshot;
  double rate_bytes_per_second = 0;  // over the last seconds
  std::optional<int> percent;        // once the total is known; 100 only when everything is settled
  std::optional<double> seconds_left;
};

class ProgressMeter {
 public:
  ProgressView update(const ProgressSnapshot& snapshot);

 private:
  struct Sample {
    double seconds;
    std::uint64_t bytes;
  };
  double rate_of_window(const ProgressSnapshot& snapshot);

  std::deque<Sample> window_;
  int percent_ = 0;
};

}  // namespace fgsync::tools
