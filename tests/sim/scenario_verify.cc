// What fgsyncctl verify says of the target when all is over.
#include "scenario_ends.h"
#include "verify/tree_check.h"

namespace fgsync::sim {
namespace {

class Differences final : public VerifyObserver {
 public:
  void on_progress(const ProgressSnapshot& /*snapshot*/) override {}
  void on_note(const std::string& note) override { others = "said: " + note; }
  void on_difference(const Difference& difference) override {
    if (difference.kind == DifferenceKind::kContents) {
      contents.insert(difference.path);
    } else {
      others = difference.path + ": " + difference_name(difference.kind);
    }
  }
  void on_extra(const std::string& /*path*/) override {}

  std::set<std::string> contents;
  std::string others;
};

io::Task<void> run_check(verify::TreeCheck* check, Process* process) {
  co_await check->run();
  process->set_finished();
}

}  // namespace

// Of a tree that a good run has left: nothing, but what has rotted.
void Scenario::verify_target() {
  if (!keeps_receipts_ || ends_.back()->near_end->report().exit_code != 0) return;
  if (receipt_bytes(target_.disk, kTargetRoot) == 0) return;  // nothing was to be published
  const std::uint64_t lanes = 1 + world_.random().below(4);
  Process process(target_, wire_, "verify", plan_.workers);
  VerifyOptions options;
  options.tree = kTargetRoot;
  Differences differences;
  CancelToken cancel;
  verify::TreeCheck check(process.runtime(), options, lanes, differences, cancel);
  io::TaskGroup tasks;
  tasks.spawn(process.runtime().control(), run_check(&check, &process));
  if (!go_on_until([&process] { return process.finished(); }, kRunBound, "verifying")) return;
  // What it waited for in its last step ends in the next one.
  wait(std::chrono::seconds(1));
  const VerifyReport& report = check.report();
  if (!report.status.ok()) world_.violate("verifying: " + report.status.message());
  if (report.errors_total > 0) world_.violate("verifying: " + report.errors[0].message);
  if (!differences.others.empty()) world_.violate("verifying: " + differences.others);
  if (differences.contents != spoiled_files(target_.disk, kTargetRoot)) {
    world_.violate("verifying: not what has rotted is called different");
  }
}

}  // namespace fgsync::sim
