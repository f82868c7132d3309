#include "transfer/report_builder.h"

#include <algorithm>

namespace fgsync::transfer {
namespace {

// Files smaller than this on average cost more for their names than for their bytes.
constexpr std::uint64_t kSmallFileBytes = 64u << 10;
// A process that uses this share of its cores has no more to give.
constexpr double kBusyShare = 0.8;

void append_errors(TransferReport& report, const ErrorLog& log) {
  for (ErrorEntry& error : log.errors()) report.errors.push_back(std::move(error));
  report.errors_total += log.total();
  report.files.vanished += log.changed_count();
  report.files.failed += log.failed_count();
  for (std::string& note : log.notes()) {
    if (std::find(report.notes.begin(), report.notes.end(), note) == report.notes.end()) {
      report.notes.push_back(std::move(note));
    }
  }
}

double cpu_share(const SideFigures& side, double seconds) {
  if (side.cores == 0 || seconds <= 0) return 0;
  return side.cpu_seconds / (seconds * side.cores);
}

double busy(const SideFigures& side, Stage stage) {
  return side.stages[std::size_t(stage)].busy_seconds;
}

}  // namespace

void fill_report(TransferReport& report, Session& session, const Role& role) {
  report.status = session.status();
  report.streams = std::uint32_t(session.streams.size());
  if (role.sender) {
    report.files = role.sender->files();
    report.bytes = role.sender->bytes();
    report.source_side = session.figures();
    report.target_side = role.sender->receiver_summary().figures;
    if (report.status.ok()) report.digest = role.sender->digest().hex();
  } else if (role.receiver) {
    report.files = role.receiver->sender_summary().files;
    report.bytes = role.receiver->sender_summary().bytes;
    report.source_side = role.receiver->sender_summary().figures;
    report.target_side = session.figures();
    if (report.status.ok()) report.digest = role.receiver->digest().hex();
  }
  append_errors(report, session.errors());
  append_errors(report, session.peer_errors());
  // The peer keeps and sends a bounded number of its errors, and counts the rest.
  const std::uint64_t peer_total = role.sender     ? role.sender->receiver_summary().errors_total
                                   : role.receiver ? role.receiver->sender_summary().errors_total
                                                   : 0;
  if (peer_total > session.peer_errors().total()) {
    const std::uint64_t uncounted = peer_total - session.peer_errors().total();
    report.errors_total += uncounted;
    report.files.failed += uncounted;
  }
}

std::string limited_by(const TransferReport& report, double rate_limit_seconds) {
  const double seconds = report.seconds;
  if (rate_limit_seconds > seconds / 2) return "bwlimit";
  const std::uint64_t handled = report.files.sent + report.files.unchanged;
  const std::uint64_t average = report.bytes.sent / std::max<std::uint64_t>(1, report.files.sent);
  if (handled > 1000 && average < kSmallFileBytes) return "small files";
  const double source_cpu = cpu_share(report.source_side, seconds);
  const double target_cpu = cpu_share(report.target_side, seconds);
  // Both sides on one host share its cores: then their sum counts.
  if (std::max(source_cpu, target_cpu) > kBusyShare ||
      source_cpu + target_cpu > kBusyShare * (report.transport == "local" ? 1 : 2)) {
    return source_cpu >= target_cpu ? "source cpu" : "target cpu";
  }
  const double reading = busy(report.source_side, Stage::kRead);
  const double writing =
      busy(report.target_side, Stage::kWrite) + busy(report.target_side, Stage::kSync);
  const double sending = report.transport == "local" ? 0 : busy(report.source_side, Stage::kSend);
  if (sending > reading && sending > writing) return "link";
  return reading > writing ? "source disk" : "target disk";
}

}  // namespace fgsync::transfer
