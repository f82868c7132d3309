// One seed's story: two hosts with their trees, several runs of the program between them, and what
// goes wrong meanwhile. Everything comes from the seed; `limits` take things out of it again, for
// shrinking, without changing the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ends.h"
#include "host.h"
#include "ledger.h"
#include "marker_watch.h"
#include "process.h"
#include "receipt_check.h"
#include "tree_watch.h"
#include "wire_model.h"
#include "world.h"

namespace fgsync::sim {

inline constexpr const char* kSourceRoot = "/data/source";
inline constexpr const char* kTargetRoot = "/data/target";

// What can go wrong in a story.
enum FaultKind : std::uint64_t {
  kDisk,
  kNetwork,
  kDeath,
  kSourceChange,
  kState,
  kCompany,
  kLoss,
  kFaultKinds
};

struct ScenarioLimits {
  std::uint64_t files_max = UINT64_MAX;
  std::uint64_t faults_max = UINT64_MAX;  // disk, network, kills, changes of the source, in order
  std::uint64_t faults_skipped = 0;       // the first ones
};

struct Outcome {
  std::string violation;  // empty: every property held
  std::uint64_t trace_hash = 0;
  std::uint64_t steps = 0;
  int runs = 0;
  int good_runs = 0;  // that ended with 0
  std::uint64_t files = 0;
  std::uint64_t faults = 0;  // that the seed asks for
};

class Scenario {
 public:
  struct Ends;
  Scenario(std::uint64_t seed, const ScenarioLimits& limits, bool tracing);
  ~Scenario();
  Outcome run();

 private:
  friend class FarStarter;
  // The story.
  void make_trees();
  void make_directory(Node& source, int depth);
  void make_file(Node& source_directory, const std::string& name);
  void leave_files_out();
  void make_old_target(const Node& source, Node& target, int depth);
  void choose_plan();
  bool can_be_switched() const;
  bool chooses_at_once();
  void plan_faults();
  void plan_one_fault();
  void plan_last();
  bool is_about(std::uint64_t kind) const;
  void plan_disk_fault(Host& host);
  void plan_read_error();
  void plan_network_fault();
  void plan_loss();
  void plan_death();
  void plan_source_change();
  void plan_company();
  void change_source(bool at_rest = false);
  Node* missing_at_target(Node* otherwise);
  void let_rot(Host& host);
  void interrupt_after(io::Duration time);
  void plan_damage();
  void damage_staged(Node& staging, std::uint64_t at);
  void rewrite_unseen();
  void take_down_source();
  bool is_left_out();

  // Telling it.
  void one_run(bool last);
  Ends& start(const RunPlan& plan);
  void meet_company(Ends& ends);
  std::optional<transfer::FarAddress> start_far(Ends& ends);
  io::Task<void> run_near(Ends* ends);
  void judge(const Ends& ends);
  void finish(Ends& ends);
  void cancel_run();
  bool go_on_until(const std::function<bool()>& done, io::Duration bound, const char* what);
  void wait(io::Duration time);
  void let_all_end();
  void heal();

  // What must hold.
  void watch_target();
  void watch_switch(const Node& node);
  void check_whole(const char* when);
  void check_crash(const char* when);
  std::string what_markers_say(const Disk& target) const;
  std::string what_rules_say(const Disk& target, const Node& node) const;
  std::string what_is_wrong(const Disk& target) const;
  void check_settled(const std::string& path);
  void check_good_end(const Ends& ends);
  void check_cost(const Ends& ends);
  std::string left_state() const;
  void check_blame(const Ends& ends);
  void verify_target();
  // "kind path", in order; nullopt where a tree is missing.
  std::optional<std::vector<std::string>> true_differences() const;
  void check_comparison(const Ends& ends);
  void compare_trees();
  void check_journals(const Disk& disk, const char* when);
  std::vector<const Node*> stagings(const Disk& disk, const std::string& root) const;
  std::vector<const Node*> all_stagings(const Disk& disk) const;
  std::uint64_t held_bytes() const;
  std::uint64_t missing_bytes() const;
  std::string outside() const;

  World world_;
  ScenarioLimits limits_;
  Wire wire_;
  Host source_;
  Host target_;
  Ledger ledger_;
  MarkerWatch markers_;
  TreeWatch tree_;
  RunPlan plan_;
  std::vector<std::unique_ptr<Ends>> ends_;
  std::vector<std::uint64_t> source_files_;  // inodes, for changes
  std::vector<std::uint64_t> sizes_used_;
  std::uint64_t file_count_ = 0;
  std::uint64_t faults_asked_ = 0;
  std::uint64_t fault_kinds_ = 0;  // what this seed is about: a bit for each kind
  std::string outside_;
  std::set<KnownFile> old_files_;  // at the target before any run
  std::set<std::string> rotted_;   // what a receipt may tell otherwise, or is there to find
  bool has_rules_ = false;         // about names, in all runs but the last
  bool obstructed_ = false;        // something stands in the way for good
  bool keeps_receipts_ = true;     // nothing happens that may cost a target its receipt
  bool has_left_state_ = false;    // what stops or hinders a run may leave its state behind
  bool state_damaged_ = false;     // by somebody who is no run
  bool some_at_once_ = false;      // runs publish the whole tree at once (RunPlan::publish_tree)
  bool all_at_once_ = false;       // all of them do
  bool only_company_ = false;      // nothing else is wrong: every run must succeed
  bool only_losses_ = false;       // only connections and far sides are lost: the same
  bool last_ = false;
  Ends* under_way_ = nullptr;  // the run that others may be company of
  int runs_ = 0;
  int good_runs_ = 0;
};

}  // namespace fgsync::sim
