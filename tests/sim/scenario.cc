// Telling a seed's story, and what must hold all through it.
#include "scenario.h"

#include <algorithm>

#include "openssl_random.h"
#include "storage/tree_walker.h"

namespace fgsync::sim {

namespace {

// No run, and nothing that a run leaves behind, may take longer (virtual time): connecting 15 s,
// the far side's patience 60 s twice, TCP's own 60 s, partitions of 90 s, and the transfer.
constexpr std::chrono::seconds kRunBound{400};
constexpr std::uint64_t kStepsMax = 3'000'000;

}  // namespace

// One run's two processes.
struct Scenario::Ends {
  std::unique_ptr<Process> far;
  std::unique_ptr<Process> near;
  RunPlan plan;
  std::uint64_t near_boot = 0;
  std::unique_ptr<FarEnd> far_end;
  std::unique_ptr<NearEnd> near_end;
  io::TaskGroup tasks;
  bool over() const { return far->finished() && near->finished(); }
};

Scenario::Scenario(std::uint64_t seed, const ScenarioLimits& limits, bool tracing)
    : world_(seed, tracing),
      limits_(limits),
      wire_(world_),
      source_(world_, "source", 10, "10.0.0.1"),
      target_(world_, "target", 11, "10.0.0.2"),
      ledger_(kTargetRoot) {
  seed_openssl_random(seed);
}

Scenario::~Scenario() = default;

Outcome Scenario::run() {
  make_trees();
  choose_plan();
  outside_ = outside();
  watch_target();
  const std::uint64_t runs = fault_kinds_ == 0 ? 0 : 1 + world_.random().skewed(3);
  for (std::uint64_t i = 0; i < runs && !world_.violation(); ++i) one_run(false);
  if (!world_.violation()) let_all_end();
  if (!world_.violation()) one_run(true);
  if (!world_.violation()) let_all_end();
  if (!world_.violation()) check_whole("at the end");

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
    if (!ends->over()) (void)ends.release();
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
    host->slow_until = {};
  }
  wire_.heal();
}

void Scenario::let_all_end() {
  for (auto& ends : ends_) ends->far_end->leave_alone();
  (void)go_on_until(
      [this] {
        return std::all_of(ends_.begin(), ends_.end(),
                           [](const auto& ends) { return ends->over(); });
      },
      kRunBound, "what runs left behind");
}

void Scenario::start(Ends& ends) {
  Host& near_host = plan_.push ? source_ : target_;
  Host& far_host = plan_.push ? target_ : source_;
  ends.plan = plan_;
  ends.near_boot = near_host.boot;
  const std::string number = std::to_string(runs_);
  ends.far = std::make_unique<Process>(far_host, wire_, "far" + number, plan_.workers);
  ends.near = std::make_unique<Process>(near_host, wire_, "near" + number, plan_.workers);
  ends.far_end = std::make_unique<FarEnd>(*ends.far, ends.plan);
  Handover handover;
  (void)ends.far_end->announce(handover);
  ends.near_end = std::make_unique<NearEnd>(*ends.near, ends.plan, handover);
  ends.tasks.spawn(ends.far->runtime().control(), ends.far_end->run());
  ends.tasks.spawn(ends.near->runtime().control(), ends.near_end->run());
}

void Scenario::cancel_run() {
  world_.trace("cancelled", std::uint64_t(runs_));
  ends_.back()->near_end->cancel().request();
}

void Scenario::one_run(bool last) {
  last_ = last;
  ++runs_;
  if (last) {
    heal();
    plan_.frames_until_flip = -1;
    plan_.timeout = std::chrono::milliseconds(60'000);
  } else {
    plan_faults();
  }
  world_.trace("run", std::uint64_t(runs_), plan_.push);
  const io::TimePoint started = world_.now();
  const std::uint64_t missing = missing_bytes();
  wire_.data_bytes = 0;
  ends_.push_back(std::make_unique<Ends>());
  Ends& ends = *ends_.back();
  start(ends);
  const bool ended = go_on_until([&ends] { return ends.near->finished() || !ends.near->alive(); },
                                 kRunBound, "a run");
  if (!ended) return;
  const bool died = !ends.near->alive();
  if (!died) {
    const TransferReport& report = ends.near_end->report();
    world_.trace("run ended", std::uint64_t(report.exit_code), report.errors_total,
                 report.status.message());
    if (report.exit_code == 0) {
      ++good_runs_;
      check_good_end(started, missing);
    } else if (last && !obstructed_) {
      std::string why = report.status.message();
      if (!report.errors.empty()) why += report.errors[0].path + ": " + report.errors[0].message;
      world_.violate("a run without trouble ended with " + std::to_string(report.exit_code) + ": " +
                     why);
    }
  }
  finish(ends);
}

// The shell hears that the near end is gone, sooner or later; then somebody tries again.
void Scenario::finish(Ends& ends) {
  FarEnd* const far = ends.far_end.get();
  // Of a host without power nothing is heard, least of all that it is gone.
  const bool silent = ends.near->host().boot != ends.near_boot;
  const std::uint64_t patience = silent ? 90'000'000'000 : 3'000'000'000;
  world_.after(io::Duration(std::int64_t(world_.random().skewed(patience))),
               [far] { far->leave_alone(); });
  check_whole("after a run");
  // Who is in a hurry meets what the run before has left alive.
  const std::uint64_t pause = world_.random().percent(30) ? 300'000'000 : 20'000'000'000;
  if (!last_) wait(io::Duration(std::int64_t(world_.random().skewed(pause))));
}

// ---- Properties

void Scenario::watch_target() {
  source_.somebody_else = [this] { change_source(); };
  target_.on_change = [this](const Node& node) {
    if (world_.violation()) return;
    Disk& disk = target_.disk;
    if (node.parent == 0 && node.inode != Disk::kRoot) return;  // has no name any more
    const Node* const root = disk.find_path(kTargetRoot);
    if (root == nullptr || !disk.is_below(node, root->inode)) {
      // The target itself was made, or somebody else has had its way.
      if (node.inode != Disk::kRoot) world_.violate("outside the target: " + disk.path_of(node));
      return;
    }
    if (disk.is_in_state_directory(node)) return;
    if (std::string wrong = ledger_.check_node(disk, node); !wrong.empty()) {
      world_.violate("at a change: " + wrong);
    }
    if (node.type == io::FileType::kDirectory) check_whole("at a change");
    // What would be there if the power were cut right now?
    if (world_.random().percent(15)) check_crash("at a change");
  };
  target_.on_power_cut = [this] { check_whole("after a power cut"); };
  source_.on_power_cut = [this] { take_down_source(); };
  source_.on_change = [this](const Node& node) {
    world_.violate("the sender changes its host: " + source_.disk.path_of(node));
  };
}

void Scenario::check_whole(const char* when) {
  std::string wrong = ledger_.check_tree(target_.disk);
  if (wrong.empty() && outside() != outside_) wrong = "something outside the target has changed";
  if (!wrong.empty()) world_.violate(std::string(when) + ": " + wrong);
}

// On a copy, with chances of its own: the run goes on as if nothing had been.
void Scenario::check_crash(const char* when) {
  Disk disk = target_.disk;
  Random random(world_.random().next());
  disk.crash(random);
  const std::string wrong = ledger_.check_tree(disk);
  if (!wrong.empty()) world_.violate(std::string(when) + ", were the power cut: " + wrong);
}

void Scenario::check_good_end(io::TimePoint started, std::uint64_t missing) {
  std::string wrong = ledger_.compare(source_.disk, kSourceRoot, target_.disk, started);
  if (!wrong.empty()) {
    world_.violate("success, but " + wrong);
    return;
  }
  const Node& root = *target_.disk.find_path(kTargetRoot);
  if (!has_left_state_ && root.entries.contains(storage::kStateDirectoryName)) {
    world_.violate("success, but the state directory is left");
  }
  for (int i = 0; i < 3; ++i) {
    Disk disk = target_.disk;
    Random random(world_.random().next());
    disk.crash(random);
    wrong = ledger_.compare(source_.disk, kSourceRoot, disk, started);
    if (!wrong.empty()) {
      world_.violate("success, but not durable: " + wrong);
      return;
    }
  }
  // 32 bytes of header and 36 of frame to a file or chunk, and as much again for tags and answers.
  const std::uint64_t bound = missing + 200 * (ledger_.records().size() + missing / 65536) +
                              2048 * std::uint64_t(plan_.streams);
  bool changing = false;
  for (const auto& [path, record] : ledger_.records()) changing |= record.changed >= started;
  if (!changing && wire_.data_bytes > bound) {
    world_.violate("sent " + std::to_string(wire_.data_bytes) + " bytes where " +
                   std::to_string(missing) + " were missing");
  }
}

namespace {

std::uint64_t missing_below(const Disk& source, const Node& wanted, const Disk& target,
                            const Node* present) {
  std::uint64_t bytes = 0;
  for (const auto& [name, inode] : wanted.entries) {
    const Node& node = *source.find(inode);
    const Node* there = nullptr;
    if (present != nullptr) {
      const auto entry = present->entries.find(name);
      if (entry != present->entries.end()) there = target.find(entry->second);
    }
    if (node.type == io::FileType::kDirectory) {
      bytes += missing_below(source, node, target, there);
    } else if (node.data != nullptr) {
      const bool same = there != nullptr && there->data != nullptr &&
                        there->data->size() == node.data->size() &&
                        there->attributes.mtime == node.attributes.mtime;
      if (!same) bytes += node.data->size();
    }
  }
  return bytes;
}

void describe(const Disk& disk, const Node& node, std::string& text) {
  text += node.name + ":" + std::to_string(node.inode) + ":" +
          std::to_string(node.attributes.mode) + ":" +
          std::to_string(node.attributes.mtime.nanoseconds);
  if (node.data != nullptr) {
    text.append(reinterpret_cast<const char*>(node.data->data()), node.data->size());
  }
  for (const auto& [name, inode] : node.entries) describe(disk, *disk.find(inode), text);
}

}  // namespace

std::uint64_t Scenario::missing_bytes() const {
  return missing_below(source_.disk, *source_.disk.find_path(kSourceRoot), target_.disk,
                       target_.disk.find_path(kTargetRoot));
}

// Everything on the target's host that is none of the run's business.
std::string Scenario::outside() const {
  std::string text;
  describe(target_.disk, *target_.disk.find_path("/outside"), text);
  for (const auto& [name, inode] : target_.disk.find_path("/data")->entries) {
    if (name != "target") text += name;
  }
  return text;
}

}  // namespace fgsync::sim
