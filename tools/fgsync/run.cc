#include "run.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "json_report.h"
#include "lock_file.h"
#include "report_printer.h"
#include "run_log.h"
#include "run_observer.h"
#include "text.h"

namespace fgsync::tools {
namespace {

// What was asked for could not be handed over, or the log could not be written: the replica is in
// order, but whoever relies on the output must not read 0.
constexpr int kOutputFailed = 11;

std::string requested_output(const CommandLine& command, const TransferReport& report) {
  std::string text;
  if (command.transfer.dry_run) {
    for (const std::string& line : dry_run_lines(report, command)) text += line + "\n";
  }
  if (command.output.stats) text += stats_table(report);
  return text;
}

void print_output_failure(int error, Console& console) {
  console.print(std::string("fgsync: standard output: writing: ") + std::strerror(error));
}

// With --json standard output is that one object; lists and tables asked for besides go to the
// console.
bool print_requested(const CommandLine& command, const TransferReport& report,
                     const std::vector<std::string>& words, int standard_output, Console& console) {
  const std::string text = requested_output(command, report);
  std::string out = text;
  if (command.output.json) {
    if (!text.empty()) console.print(std::string_view(text).substr(0, text.size() - 1));
    out = json_report(report, command.transfer, words);
  }
  if (write_all(standard_output, out)) return true;
  print_output_failure(errno, console);
  return false;
}

// A local file whose name has a colon was given without "./", and reached for a host of that name.
void advise_on_colons(const CommandLine& command, const TransferReport& report, Console& console) {
  const ErrorCode code = report.status.code();
  if (code != ErrorCode::kRemoteShellFailed && code != ErrorCode::kConnectionFailed &&
      code != ErrorCode::kConnectTimeout) {
    return;
  }
  std::vector<Location> locations = command.transfer.sources;
  locations.push_back(command.transfer.target);
  for (const Location& location : locations) {
    // "e:" is read as the home directory of e, "."; the file's name has nothing behind the colon.
    const std::string name =
        location.path == "." && location.user.empty() ? location.host + ":" : location.display();
    struct stat attributes;
    if (location.is_remote() && ::lstat(name.c_str(), &attributes) == 0) {
      const std::string shown = escape_name(name);
      console.print("fgsync: " + shown + " was read as HOST:PATH; the local name is written ./" +
                    shown);
    }
  }
}

void print_outcome(const CommandLine& command, const TransferReport& report, Console& console,
                   RunLog& log) {
  const std::string last = final_line(report, command.transfer);
  for (const std::string& line : error_lines(report, report.errors.size())) log.write(line);
  log.write(last);
  for (const std::string& line : error_lines(report, kErrorsShownMax)) console.print(line);
  advise_on_colons(command, report, console);
  if (!command.output.quiet || report.exit_code != 0) console.print(last);
}

// The report of a run that never began.
TransferReport refusal(const Status& status) {
  TransferReport report;
  report.status = status;
  report.started = std::chrono::system_clock::now();
  report.exit_code = exit_status_of(report);
  return report;
}

}  // namespace

int run(const CommandLine& command, const std::vector<std::string>& words, Replicate replicate,
        int standard_output, Console& console, CancelToken& cancel) {
  Result<RunLog> log = RunLog::open(command.output.log_file);
  if (!log.ok()) {
    console.print("fgsync: " + escape_message(log.status().message()));
    return exit_status_of(log.status().code());
  }
  log->write("started: " + escape_name(quote_words(words)));

  RunObserver observer(command, standard_output, console, *log);
  for (const std::string& note : command.notes) observer.on_note(note);
  Result<LockFile> lock = LockFile::take(command.transfer.dry_run ? "" : command.lock_file);
  const TransferReport report =
      lock.ok() ? replicate(command.transfer, observer, cancel) : refusal(lock.status());
  observer.finish();
  for (const std::string& note : report.notes) observer.on_note(note);

  bool delivered = print_requested(command, report, words, standard_output, console);
  if (observer.write_error() != 0) {
    print_output_failure(observer.write_error(), console);
    delivered = false;
  }
  print_outcome(command, report, console, *log);
  if (!log->status().ok()) {
    console.print("fgsync: " + escape_message(log->status().message()));
    delivered = false;
  }
  return report.exit_code == 0 && !delivered ? kOutputFailed : report.exit_code;
}

}  // namespace fgsync::tools
