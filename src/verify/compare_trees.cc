// The entry point: a run that compares, told as a verification.
#include <algorithm>

#include "base/limits.h"
#include "fgsync/transfer.h"
#include "fgsync/verify.h"

namespace fgsync {
namespace {

class Listener final : public Observer {
 public:
  Listener(VerifyObserver& observer, VerifyReport& report) : observer_(observer), report_(report) {}
  void on_progress(const ProgressSnapshot& snapshot) override { observer_.on_progress(snapshot); }
  void on_note(const std::string& note) override { observer_.on_note(note); }
  void on_change(const EntryChange& /*change*/) override {}
  void on_difference(const Difference& difference) override {
    observer_.on_difference(difference);
    ++(difference.kind == DifferenceKind::kExtra ? report_.files_extra : report_.files_different);
    if (report_.differences_total++ < limits::kErrorsKeptMax) {
      report_.differences.push_back(difference);
    }
  }

 private:
  VerifyObserver& observer_;
  VerifyReport& report_;
};

std::uint64_t bytes_read(const SideFigures& side) {
  return side.stages[std::size_t(Stage::kRead)].bytes;
}

}  // namespace

VerifyReport compare_trees(const TransferOptions& options, VerifyObserver& observer,
                           CancelToken& cancel) {
  VerifyReport report;
  Listener listener(observer, report);
  TransferOptions comparison = options;
  comparison.compare = true;
  TransferReport run = replicate(comparison, listener, cancel);
  report.status = run.status;
  report.started = run.started;
  report.seconds = run.seconds;
  report.io_engine = run.io_engine;
  report.files_verified = run.files.unchanged;
  report.files_failed = run.files.failed + run.files.vanished;
  report.bytes_read = std::max(bytes_read(run.source_side), bytes_read(run.target_side));
  report.errors = std::move(run.errors);
  report.errors_total = run.errors_total;
  report.notes = std::move(run.notes);
  report.exit_code = exit_status_of(report);
  return report;
}

}  // namespace fgsync
