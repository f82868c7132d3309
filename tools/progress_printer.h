// Shows progress as the user asked: a line redrawn on a terminal (two with --verbose), a line now
// and then where there is none, or JSON lines.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "command_line.h"
#include "console.h"
#include "fgsync/report.h"
#include "progress_meter.h"

namespace fgsync::tools {

// The display of one view, each line narrower than `width`: parts that do not fit are left out from
// the end.
std::vector<std::string> progress_lines(const ProgressView& view, bool verbose, std::size_t width);

// One JSON object, no line end.
std::string progress_json(const ProgressView& view);

class ProgressPrinter {
 public:
  // The console must outlive the printer.
  ProgressPrinter(Console& console, const OutputOptions& output);

  void update(const ProgressSnapshot& snapshot);
  // The run has ended: takes the display away; the last JSON line tells the end.
  void finish();

 private:
  enum class Style : unsigned char { kNone, kRedrawn, kLines, kJson };
  static Style choose_style(const Console& console, const OutputOptions& output);
  double interval_seconds() const;
  void show(const ProgressView& view);

  Console& console_;
  bool verbose_;
  Style style_;
  ProgressMeter meter_;
  std::optional<double> shown_at_;
  std::optional<ProgressView> unshown_;  // newer than what is shown
};

}  // namespace fgsync::tools
