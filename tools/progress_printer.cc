#include "progress_printer.h"

#include <nlohmann/json.hpp>

#include "text.h"

namespace fgsync::tools {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kLineSeconds = 10;
constexpr double kJsonSeconds = 1;

// Parts with two blanks between them, as many from the front as fit.
std::string join_fitting(const std::vector<std::string>& parts, std::size_t width) {
  // A line as wide as the terminal would leave its cursor on the next one.
  const std::size_t room = width > 0 ? width - 1 : 0;
  std::string line;
  for (const std::string& part : parts) {
    const std::size_t gap = line.empty() ? 0 : 2;
    if (line.size() + gap + part.size() > room) break;
    line.append(gap, ' ');
    line += part;
  }
  return line;
}

std::string of_total(const std::string& done, const std::string& total, bool total_known) {
  return total_known ? done + " of " + total : done;
}

}  // namespace

std::vector<std::string> progress_lines(const ProgressView& view, bool verbose, std::size_t width) {
  const ProgressSnapshot& snapshot = view.snapshot;
  std::vector<std::string> parts;
  if (view.percent) parts.push_back(std::to_string(*view.percent) + "%");
  parts.push_back(of_total(human_bytes(snapshot.bytes_done), human_bytes(snapshot.bytes_total),
                           snapshot.total_known));
  parts.push_back(human_rate(view.rate_bytes_per_second));
  if (view.seconds_left) parts.push_back("ETA " + human_duration(*view.seconds_left));
  // Before the walk has ended the total still grows; the plus sign says so.
  parts.push_back(std::to_string(snapshot.files_done) + "/" + std::to_string(snapshot.files_total) +
                  (snapshot.total_known ? " files" : "+ files"));
  parts.push_back(counted(snapshot.streams, "stream", "streams"));
  std::vector<std::string> lines = {join_fitting(parts, width)};
  if (verbose) {
    const double seconds = snapshot.seconds;
    const double average = seconds > 0 ? static_cast<double>(snapshot.bytes_done) / seconds : 0;
    lines.push_back(join_fitting(
        {"running for " + human_duration(seconds), "on average " + human_rate(average)}, width));
  }
  return lines;
}

std::string progress_json(const ProgressView& view) {
  const ProgressSnapshot& snapshot = view.snapshot;
  nlohmann::ordered_json object;
  object["seconds"] = snapshot.seconds;
  object["total_known"] = snapshot.total_known;
  object["bytes_done"] = snapshot.bytes_done;
  object["bytes_total"] = snapshot.bytes_total;
  object["files_done"] = snapshot.files_done;
  object["files_total"] = snapshot.files_total;
  object["streams"] = snapshot.streams;
  object["rate_bytes_per_second"] = view.rate_bytes_per_second;
  object["percent"] = view.percent ? nlohmann::ordered_json(*view.percent) : nullptr;
  object["seconds_left"] = view.seconds_left ? nlohmann::ordered_json(*view.seconds_left) : nullptr;
  return object.dump();
}

ProgressPrinter::ProgressPrinter(Console& console, const OutputOptions& output)
    : console_(console), verbose_(output.verbose), style_(choose_style(console, output)) {}

ProgressPrinter::Style ProgressPrinter::choose_style(const Console& console,
                                                     const OutputOptions& output) {
  switch (output.progress) {
    case ProgressMode::kNever:
      return Style::kNone;
    case ProgressMode::kJson:
      return Style::kJson;
    case ProgressMode::kAlways:
      return console.is_terminal() ? Style::kRedrawn : Style::kLines;
    case ProgressMode::kAuto:
      return console.is_terminal() && !output.quiet ? Style::kRedrawn : Style::kNone;
  }
  return Style::kNone;
}

double ProgressPrinter::interval_seconds() const {
  switch (style_) {
    case Style::kLines:
      return kLineSeconds;
    case Style::kJson:
      return kJsonSeconds;
    case Style::kNone:
    case Style::kRedrawn:
      break;
  }
  return kRedrawSeconds;
}

void ProgressPrinter::update(const ProgressSnapshot& snapshot) {
  if (style_ == Style::kNone) return;
  unshown_ = meter_.update(snapshot);
  // Lines wait for their first interval; what redraws or is read by a program starts at once.
  const double last = shown_at_ ? *shown_at_ : style_ == Style::kLines ? 0 : -interval_seconds();
  if (snapshot.seconds - last < interval_seconds()) return;
  shown_at_ = snapshot.seconds;
  show(*unshown_);
  unshown_.reset();
}

void ProgressPrinter::show(const ProgressView& view) {
  if (style_ == Style::kRedrawn) {
    console_.show_progress(progress_lines(view, verbose_, console_.width()));
  } else if (style_ == Style::kJson) {
    console_.print(progress_json(view));
  } else {
    constexpr std::size_t kLineWidth = 120;
    console_.print(progress_lines(view, false, kLineWidth).front());
  }
}

void ProgressPrinter::finish() {
  if (style_ == Style::kRedrawn) console_.clear_progress();
  if (style_ == Style::kJson && unshown_) show(*unshown_);
  unshown_.reset();
}

}  // namespace fgsync::tools
