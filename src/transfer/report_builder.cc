#include "transfer/report_builder.h"

#include <algorithm>

namespace fgsync::transfer {
namespace {

// Files smaller than this on average cost more for their names than for their bytes.
constexpr std::uint64_t kSmallFileBytes = 64u << 10;
// A process that uses this share of its cores has no more to give.
constexpr double kBusyShare = 0.8;

void add_note(TransferReport& report, std::string note) {
  if (std::find(report.notes.begin(), report.notes.end(), note) != report.notes.end()) return;
  report.notes.push_back(std::move(note));
}

void append_errors(TransferReport& report, const ErrorLog& log) {
  for (ErrorEntry& error : log.errors()) report.errors.push_back(std::move(error));
  report.errors_total += log.total();
  report.files.vanished += log.changed_count();
  report.files.failed += log.failed_count();
  for (std::string& note : log.notes()) add_note(report, std::move(note));
}

void add_stages(SideFigures& side, const SideFigures& earlier) {
  for (std::size_t i = 0; i < kStageCount; ++i) {
    side.stages[i].busy_seconds += earlier.stages[i].busy_seconds;
    side.stages[i].bytes += earlier.stages[i].bytes;
  }
}

// By how much more is unchanged than at the start.
std::uint64_t grown(std::uint64_t unchanged, std::uint64_t at_start, const FoundAtStart& found,
                    std::uint64_t heard_of) {
  if (!found.is_complete) return std::min(unchanged, heard_of);
  return unchanged - std::min(unchanged, at_start);
}

double cpu_share(const SideFigures& side, double seconds) {
  if (side.cores == 0 || seconds <= 0) return 0;
  return side.cpu_seconds / (seconds * side.cores);
}

double busy(const SideFigures& side, Stage stage) {
  return side.stages[std::size_t(stage)].busy_seconds;
}

std::uint64_t errors_total_of_peer(const Role& role) {
  if (role.sender) return role.sender->receiver_summary().errors_total;
  if (role.receiver) return role.receiver->sender_summary().errors_total;
  if (role.compare_sender) return role.compare_sender->receiver_summary().errors_total;
  if (role.compare_receiver) return role.compare_receiver->sender_summary().errors_total;
  return 0;
}

}  // namespace

void fill_report(TransferReport& report, Session& session, const Role& role) {
  report.status = session.status();
  report.streams = std::uint32_t(session.streams.size());
  report.cipher = transport::cipher_name(session.parameters.cipher);
  if (role.sender) {
    report.files = role.sender->files();
    report.bytes = role.sender->bytes();
    report.source_side = session.figures();
    report.target_side = role.sender->receiver_summary().figures;
    if (report.status.ok()) report.digest = role.sender->digest().hex();
  } else if (role.receiver) {
    // A sender that has not come to its end has not said what it did.
    const bool heard = report.status.ok();
    report.files = heard ? role.receiver->sender_summary().files : role.receiver->files();
    report.bytes = heard ? role.receiver->sender_summary().bytes : role.receiver->bytes();
    report.source_side = role.receiver->sender_summary().figures;
    report.target_side = session.figures();
    if (report.status.ok()) report.digest = role.receiver->digest().hex();
  }
  if (role.compare_sender) {
    report.files = role.compare_sender->files();
    report.bytes = role.compare_sender->bytes();
    report.source_side = session.figures();
    report.target_side = role.compare_sender->receiver_summary().figures;
  } else if (role.compare_receiver) {
    report.files = role.compare_receiver->sender_summary().files;
    report.bytes = role.compare_receiver->sender_summary().bytes;
    report.source_side = role.compare_receiver->sender_summary().figures;
    report.target_side = session.figures();
  }
  append_errors(report, session.errors());
  append_errors(report, session.peer_errors());
  // The peer keeps and sends a bounded number of its errors, and counts the rest.
  const std::uint64_t peer_total = errors_total_of_peer(role);
  if (peer_total > session.peer_errors().total()) {
    const std::uint64_t uncounted = peer_total - session.peer_errors().total();
    report.errors_total += uncounted;
    report.files.failed += uncounted;
  }
}

std::vector<std::string> mapping_of(const Role& role, const std::string& source_prefix,
                                    const std::string& target_prefix) {
  std::vector<std::string> mapping;
  const std::size_t count = std::min(role.source_displays.size(), role.target_displays.size());
  for (std::size_t i = 0; i < count; ++i) {
    mapping.push_back(source_prefix + role.source_displays[i] + " -> " + target_prefix +
                      role.target_displays[i]);
  }
  return mapping;
}

void add_session(TransferReport& run, TransferReport session,
                 const std::optional<FoundAtStart>& found) {
  if (found) {
    // Before a plan has come to its end, what was heard of is all that is known.
    FileFigures& files = session.files;
    const std::uint64_t new_files = grown(files.unchanged, found->files, *found, run.files.sent);
    files.unchanged -= new_files;
    files.sent += new_files;
    ByteFigures& bytes = session.bytes;
    const std::uint64_t new_bytes =
        grown(bytes.unchanged, found->bytes, *found, run.bytes.sent + run.bytes.resumed);
    bytes.unchanged -= new_bytes;
    // Parts that earlier runs had left are none of what this one sent, whichever session used them.
    const std::uint64_t came = bytes.sent + bytes.resumed + new_bytes;
    bytes.resumed = std::min(bytes.resumed + run.bytes.resumed, found->held);
    bytes.sent = came - std::min(came, bytes.resumed);
    bytes.wire += run.bytes.wire;
    add_stages(session.source_side, run.source_side);
    add_stages(session.target_side, run.target_side);
  }
  for (std::string& note : session.notes) add_note(run, std::move(note));
  session.notes = std::move(run.notes);
  session.transport = std::move(run.transport);
  session.started = run.started;
  session.planned = std::move(run.planned);
  if (session.mapping.empty()) session.mapping = std::move(run.mapping);
  run = std::move(session);
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
