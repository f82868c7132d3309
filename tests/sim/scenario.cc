// Telling a seed's story, and what must hold all through it.
#include "scenario_ends.h"

#include <algorithm>

#include "openssl_random.h"

namespace fgsync::sim {

namespace {

constexpr std::uint64_t kStepsMax = 3'000'000;

}  // namespace

Scenario::Scenario(std::uint64_t seed, const ScenarioLimits& limits, bool tracing)
    : world_(seed, tracing),
      limits_(limits),
      wire_(world_),
      source_(world_, "source", 10, "10.0.0.1"),
      target_(world_, "target", 11, "10.0.0.2"),
      ledger_(kTargetRoot),
      tree_(kTargetRoot) {
  seed_openssl_random(seed);
}

Scenario::~Scenario() = default;

Outcome Scenario::run() {
  make_trees();
  choose_plan();
  outside_ = outside();
  old_files_ = files_below(target_.disk, kTargetRoot);
  tree_.begin(target_.disk);
  watch_target();
  const std::uint64_t runs = fault_kinds_ == 0 ? 0 : 1 + world_.random().skewed(3);
  for (std::uint64_t i = 0; i < runs && !world_.violation(); ++i) one_run(false);
  if (!world_.violation()) let_all_end();
  if (!world_.violation()) one_run(true);
  if (!world_.violation()) let_all_end();
  if (!world_.violation()) check_whole("at the end");
  if (!world_.violation()) verify_target();
  if (!world_.violation()) compare_trees();
  // Waits that were cancelled in a run's last step end in the next one.
  if (!world_.violation()) wait(std::chrono::seconds(1));

  Outcome outcome;
  outcome.violation = world_.violation().value_or("");
  outcome.trace_hash = world_.trace_hash();
  outcome.steps = world_.steps();
  outcome.runs = runs_;
  outcome.good_runs = good_runs_;
  outcome.files = file_count_;
  outcome.faults = faults_asked_;
  // Coroutines that can't end hold what is to be destroyed.
  for (auto& ends : ends_) {
    if (!ends->is_over()) (void)ends.release();
  }
  return outcome;
}

// ---- Running

bool Scenario::go_on_until(const std::function<bool()>& done, io::Duration bound,
                           const char* what) {
  const io::TimePoint end = world_.now() + bound;
  while (!done()) {
    if (world_.violation()) return false;
    if (!world_.step()) {
      world_.violate(std::string(what) + ": nothing is left to happen");
      return false;
    }
    if (world_.now() > end) {
      world_.violate(std::string(what) + ": takes longer than it may");
      return false;
    }
    if (world_.steps() > kStepsMax) {
      world_.violate(std::string(what) + ": goes on and on");
      return false;
    }
  }
  return !world_.violation();
}

void Scenario::wait(io::Duration time) {
  bool over = false;
  world_.after(time, [&over] { over = true; });
  (void)go_on_until([&over] { return over; }, time + std::chrono::seconds(1), "a pause");
}

void Scenario::heal() {
  for (Host* host : {&source_, &target_}) {
    host->faults.clear();
    host->full = false;
    host->loses_writes = false;
    host->slow_until = host->short_until = {};
  }
  wire_.heal();
}

void Scenario::let_all_end() {
  const auto all = [this](bool (Ends::*what)() const) {
    return std::all_of(ends_.begin(), ends_.end(),
                       [what](const auto& ends) { return ((*ends).*what)(); });
  };
  if (!go_on_until([&] { return all(&Ends::near_is_over); }, kRunBound, "company")) return;
  for (auto& ends : ends_) ends->leave_far_ends_alone();
  (void)go_on_until([&] { return all(&Ends::is_over); }, kRunBound, "what runs left behind");
}

Scenario::Ends& Scenario::start(const RunPlan& plan) {
  auto made = std::make_unique<Ends>();
  Ends& ends = *made;
  Host& near_host = plan.push ? source_ : target_;
  ends.plan = plan;
  if (plan.push && plan.durability == Durability::kFull) {
    const std::uint64_t boot = target_.boot;
    ends.plan.on_replicated = [this, &ends, boot](const std::string& path) {
      if (target_.boot == boot && !ends.in_company) check_settled(path);
    };
  }
  if (plan.compare) {
    ends.plan.on_difference = [&ends](const Difference& found) {
      ends.differences.push_back(std::string(difference_name(found.kind)) + " " + found.path);
    };
    ends.differences_before = true_differences();
  }
  ends.near_boot = near_host.boot;
  ends.started = world_.now();
  if (!plan.push) meet_company(ends);
  const std::string number = std::to_string(ends_.size() + 1);
  ends.near = std::make_unique<Process>(near_host, wire_, "near" + number, plan.workers);
  if (plan.dry_run) ends.near->forbid_changes();
  ends.starter = std::make_unique<FarStarter>(*this, ends);
  ends.near_end = std::make_unique<NearEnd>(*ends.near, ends.plan, *ends.starter);
  ends.tasks.spawn(ends.near->runtime().control(), run_near(&ends));
  ends_.push_back(std::move(made));
  return ends;
}

// A receiver begins. A far side that is still there when the next one comes is company like any
// other run's.
void Scenario::meet_company(Ends& ends) {
  for (const auto& other : ends_) {
    if (other->is_receiving() && !ends.plan.dry_run) ends.in_company = other->in_company = true;
  }
  // Two that write to one receipt spoil it.
  if (ends.in_company) keeps_receipts_ = false;
}

std::optional<transfer::FarAddress> Scenario::start_far(Ends& ends) {
  if (ends.plan.push) meet_company(ends);
  // Before that nothing on the wire is its own.
  if (ends.fars.empty()) {
    ends.bytes_before = wire_.data_bytes;
    ends.connections_before = wire_.data_connections;
    ends.lost_before = wire_.data_connections_lost();
  }
  // A journal that cannot be read is of no use, and the run goes on without.
  ends.missing += missing_bytes() - (is_about(kDisk) || ends.plan.publish_tree ? 0 : held_bytes());
  Host& far_host = ends.plan.push ? target_ : source_;
  const std::string name = ends.near->name() + "-far" + std::to_string(ends.fars.size() + 1);
  auto process = std::make_unique<Process>(far_host, wire_, name, ends.plan.workers);
  if (ends.plan.dry_run) process->forbid_changes();
  auto end = std::make_unique<FarEnd>(*process, ends.plan);
  std::optional<transfer::FarAddress> address = end->announce();
  if (address) ends.tasks.spawn(process->runtime().control(), end->run());
  if (!address) process->set_finished();
  ends.fars.push_back({std::move(process), std::move(end)});
  return address;
}

io::Task<void> Scenario::run_near(Ends* ends) {
  co_await ends->near_end->run();
  if (ends->near->alive()) judge(*ends);
}

void Scenario::cancel_run() {
  world_.trace("cancelled", std::uint64_t(runs_));
  under_way_->near_end->cancel().request();
}

void Scenario::one_run(bool last) {
  last_ = last;
  ++runs_;
  if (last) {
    heal();
    plan_.frames_until_flip = -1;
    plan_.timeout = std::chrono::milliseconds(60'000);
    plan_.selection.rules.clear();  // the tree is whole in the end
    plan_last();
  } else {
    wire_.forget_stream_faults();
    plan_faults();
  }
  plan_.publish_tree = chooses_at_once();
  plan_.dry_run = !last && world_.random().percent(5);
  plan_.compare = plan_.dry_run && world_.random().percent(60);
  if (plan_.compare && is_about(kDisk)) plan_read_error();
  world_.trace("run", std::uint64_t(runs_), plan_.push);
  RunPlan plan = plan_;
  if (plan.compare) plan.selection.rules.clear();
  Ends& ends = start(plan);
  under_way_ = &ends;
  const bool ended = go_on_until([&ends] { return ends.near_is_over(); }, kRunBound, "a run");
  under_way_ = nullptr;
  if (ended) finish(ends);
}

// At the instant when the program ends.
void Scenario::judge(const Ends& ends) {
  const TransferReport& report = ends.near_end->report();
  world_.trace("run ended", std::uint64_t(report.exit_code), report.errors_total,
               report.status.message());
  if (ends.plan.compare) check_comparison(ends);
  if (report.exit_code == 0) {
    ++good_runs_;
    if (!ends.plan.dry_run && ends.plan.selection.rules.empty()) check_good_end(ends);
    return;
  }
  check_blame(ends);
  // It did not want to wait for another one; or one of the other kind has made, or switched, the
  // target meanwhile.
  const bool of_both_kinds = some_at_once_ && !all_at_once_ && ends.in_company;
  if ((ends.plan.fail_if_locked || of_both_kinds) && report.exit_code == 41) return;
  // The reset of a data connection that has just been made may overtake the answer that makes it.
  if (only_losses_ && report.status.code() == ErrorCode::kConnectionFailed) return;
  // There is nothing to compare with.
  if (ends.plan.compare && !ends.differences_before) return;
  // A comparison says so when the other run changes the target under it.
  if (only_company_ && ends.plan.compare && report.exit_code == 24) return;
  // What a dry run cannot tell is asked again.
  if (only_losses_ && ends.plan.dry_run) return;
  // What an earlier run has left had lost bytes in silence: reading back finds that, in time.
  if (target_.has_lost_writes && ends.plan.read_back && report.exit_code == 40) return;
  if (obstructed_ || !(last_ || only_company_ || only_losses_)) return;
  std::string why = report.status.message();
  if (!report.errors.empty()) why += report.errors[0].path + ": " + report.errors[0].message;
  world_.violate("a run without trouble ended with " + std::to_string(report.exit_code) + ": " +
                 why);
}

// The shell hears that a near end is gone that died, sooner or later; then somebody tries again.
void Scenario::finish(Ends& ends) {
  Ends* const over = &ends;
  // Of a host without power nothing is heard, least of all that it is gone.
  const bool silent = ends.near->host().boot != ends.near_boot;
  const std::uint64_t patience = silent ? 90'000'000'000 : 3'000'000'000;
  world_.after(io::Duration(std::int64_t(world_.random().skewed(patience))),
               [over] { over->leave_far_ends_alone(); });
  check_whole("after a run");
  // Who is in a hurry meets what the run before has left alive.
  const std::uint64_t pause = world_.random().percent(30) ? 300'000'000 : 20'000'000'000;
  if (!last_) wait(io::Duration(std::int64_t(world_.random().skewed(pause))));
}

}  // namespace fgsync::sim
