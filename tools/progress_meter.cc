#include "progress_meter.h"

#include <algorithm>

namespace fgsync::tools {
namespace {

// Long enough to be calm at ten snapshots a second, short enough to show a stall while it lasts.
constexpr double kWindowSeconds = 5;

// By bytes; by files where no byte has to move.
int percent_of(const ProgressSnapshot& snapshot) {
  const bool by_bytes = snapshot.bytes_total > 0;
  const std::uint64_t done = by_bytes ? snapshot.bytes_done : snapshot.files_done;
  const std::uint64_t total = by_bytes ? snapshot.bytes_total : snapshot.files_total;
  const bool settled =
      snapshot.bytes_done >= snapshot.bytes_total && snapshot.files_done >= snapshot.files_total;
  if (settled) return 100;
  if (total == 0) return 0;
  const double share = static_cast<double>(done) / static_cast<double>(total);
  return std::clamp(static_cast<int>(share * 100), 0, 99);
}

}  // namespace

double ProgressMeter::rate_of_window(const ProgressSnapshot& snapshot) {
  if (!window_.empty() && snapshot.bytes_done < window_.back().bytes) window_.clear();
  window_.push_back({snapshot.seconds, snapshot.bytes_done});
  while (window_.size() > 2 && window_[1].seconds <= snapshot.seconds - kWindowSeconds) {
    window_.pop_front();
  }
  // Before there is a window, the run's start is its other end.
  const Sample first = window_.size() > 1 ? window_.front() : Sample{0, 0};
  const double seconds = snapshot.seconds - first.seconds;
  return seconds > 0 ? static_cast<double>(snapshot.bytes_done - first.bytes) / seconds : 0;
}

ProgressView ProgressMeter::update(const ProgressSnapshot& snapshot) {
  ProgressView view;
  view.snapshot = snapshot;
  view.rate_bytes_per_second = rate_of_window(snapshot);
  if (!snapshot.total_known) return view;
  percent_ = std::max(percent_, percent_of(snapshot));
  view.percent = percent_;
  if (view.rate_bytes_per_second > 0 && snapshot.bytes_total >= snapshot.bytes_done) {
    view.seconds_left = static_cast<double>(snapshot.bytes_total - snapshot.bytes_done) /
                        view.rate_bytes_per_second;
  }
  return view;
}

}  // namespace fgsync::tools
