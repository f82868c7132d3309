#include "report_printer.h"

#include <algorithm>
#include <cstdio>

#include "itemized_change.h"
#include "text.h"

namespace fgsync::tools {
namespace {

void append_count(std::string& text, std::uint64_t count, const char* what) {
  if (count > 0) text += ", " + std::to_string(count) + " " + what;
}

// "3.8 GB (39 files, 2 unchanged)".
std::string amount(const TransferReport& report) {
  const FileFigures& files = report.files;
  std::string text = human_bytes(report.bytes.sent);
  text += " (" + counted(files.sent, "file", "files");
  append_count(text, files.unchanged, "unchanged");
  append_count(text, files.linked, "linked");
  append_count(text, files.deleted, "deleted");
  append_count(text, files.failed, "failed");
  append_count(text, files.vanished, "vanished or changed");
  return text + ")";
}

// ": 1.2 GB/s, 4 streams tcp aes128-gcm, limited by: link".
std::string circumstances(const TransferReport& report, const TransferOptions& options) {
  std::string text = ": " + human_rate(report.rate_bytes_per_second());
  if (report.streams > 0) text += ", " + counted(report.streams, "stream", "streams");
  if (!report.transport.empty()) {
    text += (report.streams > 0 ? " " : ", ") + report.transport;
    const bool on_a_wire = report.transport != "local";
    if (on_a_wire && report.cipher == "none") text += " unencrypted";
    if (on_a_wire && report.cipher != "none" && !report.cipher.empty()) text += " " + report.cipher;
  }
  if (options.durability == Durability::kNone) text += ", not made durable";
  if (!report.limited_by.empty()) text += ", limited by: " + report.limited_by;
  return escape_message(text);
}

bool at_source(Stage stage) { return stage <= Stage::kSend; }

void append_side(std::string& table, const TransferReport& report, const char* name, bool source) {
  char line[160];
  for (std::size_t i = 0; i < kStageCount; ++i) {
    const auto stage = static_cast<Stage>(i);
    if (at_source(stage) != source) continue;
    const StageFigures& figures = figures_of(report, stage);
    const double rate =
        figures.busy_seconds > 0 ? static_cast<double>(figures.bytes) / figures.busy_seconds : 0;
    std::snprintf(line, sizeof line, "%-8s%-9s%12.3f %12s %14s\n", name, stage_name(stage),
                  figures.busy_seconds, human_bytes(figures.bytes).c_str(),
                  rate > 0 ? human_rate(rate).c_str() : "-");
    table += line;
  }
}

void append_process(std::string& table, const char* name, const SideFigures& side) {
  char line[160];
  std::snprintf(line, sizeof line, "%-8scpu %.3f s on %s, peak memory %s\n", name, side.cpu_seconds,
                counted(side.cores, "core", "cores").c_str(),
                human_bytes(side.peak_memory_bytes).c_str());
  table += line;
}

}  // namespace

const StageFigures& figures_of(const TransferReport& report, Stage stage) {
  const SideFigures& side = at_source(stage) ? report.source_side : report.target_side;
  return side.stages[static_cast<std::size_t>(stage)];
}

std::string final_line(const TransferReport& report, const TransferOptions& options) {
  const std::string status = ", exit status " + std::to_string(report.exit_code);
  const std::string seconds = human_duration(report.seconds);
  if (!report.status.ok()) {
    const bool nothing = report.files.sent == 0 && report.bytes.sent == 0;
    return "ended early after " + seconds + ": " + (nothing ? "nothing" : amount(report)) +
           " replicated" + status;
  }
  if (options.dry_run) {
    return "dry run: " + counted(report.planned.size(), "path", "paths") +
           " would be changed, nothing was" + (report.exit_code != 0 ? status : "");
  }
  return "replicated " + amount(report) + " in " + seconds + circumstances(report, options) +
         (report.exit_code != 0 ? status : "");
}

std::vector<std::string> error_lines(const TransferReport& report, std::size_t shown_max) {
  std::vector<std::string> lines;
  const std::size_t shown = std::min(report.errors.size(), shown_max);
  for (std::size_t i = 0; i < shown; ++i) {
    const ErrorEntry& entry = report.errors[i];
    const std::string path = entry.path.empty() ? "" : escape_name(entry.path) + ": ";
    lines.push_back("fgsync: " + path + escape_message(entry.message));
  }
  const std::uint64_t total = std::max<std::uint64_t>(report.errors_total, report.errors.size());
  if (total > shown) lines.push_back("fgsync: ... and " + std::to_string(total - shown) + " more");
  if (!report.status.ok()) lines.push_back("fgsync: " + escape_message(report.status.message()));
  return lines;
}

std::vector<std::string> dry_run_lines(const TransferReport& report, const CommandLine& command) {
  std::vector<std::string> lines;
  for (const std::string& line : report.mapping) lines.push_back(escape_name(line));
  for (const EntryChange& change : report.planned) {
    lines.push_back(command.output.itemize
                        ? itemized_change(change, command.transfer.target.is_remote())
                        : escape_name(change.path));
  }
  return lines;
}

std::string stats_table(const TransferReport& report) {
  char line[160];
  std::snprintf(line, sizeof line, "%-8s%-9s%12s %12s %14s\n", "side", "stage", "busy s", "bytes",
                "rate");
  std::string table = line;
  append_side(table, report, "source", true);
  append_side(table, report, "target", false);
  append_process(table, "source", report.source_side);
  append_process(table, "target", report.target_side);
  std::snprintf(line, sizeof line, "%-8s%.3f s, io engine %s, limited by %s\n", "run",
                report.seconds, report.io_engine.empty() ? "-" : report.io_engine.c_str(),
                report.limited_by.empty() ? "-" : report.limited_by.c_str());
  table += line;
  table += "wire    " + human_bytes(report.bytes.wire) + " for " + human_bytes(report.bytes.sent) +
           " of contents\n";
  table += "digest  " + (report.digest.empty() ? std::string("-") : report.digest) + "\n";
  return table;
}

}  // namespace fgsync::tools
