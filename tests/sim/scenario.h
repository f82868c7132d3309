// One seed's story: two hosts with their trees, several runs of the program between them, and what
// goes wrong meanwhile. Everything comes from the seed; `limits` take things out of it again, for
// shrinking, without changing the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ends.h"
#include "host.h"
#include "ledger.h"
#include "process.h"
#include "wire_model.h"
#include "world.h"

namespace fgsync::sim {

inline constexpr const char* kSourceRoot = "/data/source";
inline constexpr const char* kTargetRoot = "/data/target";

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
  Scenario(std::uint64_t seed, const ScenarioLimits& limits, bool tracing);
  ~Scenario();
  Outcome run();

 private:
  struct Ends;
  // The story.
  void make_trees();
  void make_directory(Node& source, int depth);
  void make_file(Node& source_directory, std::uint64_t number);
  void make_old_target(const Node& source, Node& target, int depth);
  void choose_plan();
  void plan_faults();
  void plan_one_fault();
  void plan_disk_fault(Host& host);
  void plan_network_fault();
  void plan_death();
  void plan_source_change();
  void change_source();
  void take_down_source();
  bool is_left_out();

  // Telling it.
  void one_run(bool last);
  void start(Ends& ends);
  void finish(Ends& ends);
  void cancel_run();
  bool go_on_until(const std::function<bool()>& done, io::Duration bound, const char* what);
  void wait(io::Duration time);
  void let_all_end();
  void heal();

  // What must hold.
  void watch_target();
  void check_whole(const char* when);
  void check_crash(const char* when);
  void check_good_end(io::TimePoint started, std::uint64_t missing);
  std::uint64_t missing_bytes() const;
  std::string outside() const;

  World world_;
  ScenarioLimits limits_;
  Wire wire_;
  Host source_;
  Host target_;
  Ledger ledger_;
  RunPlan plan_;
  std::vector<std::unique_ptr<Ends>> ends_;
  std::vector<std::uint64_t> source_files_;  // inodes, for changes
  std::vector<std::uint64_t> sizes_used_;
  std::uint64_t file_count_ = 0;
  std::uint64_t faults_asked_ = 0;
  std::uint64_t fault_kinds_ = 0;  // what this seed is about: a bit for each kind
  std::string outside_;
  bool obstructed_ = false;      // something stands in the way for good
  bool has_left_state_ = false;  // what stops or hinders a run may leave its state behind
  bool last_ = false;
  int runs_ = 0;
  int good_runs_ = 0;
};

}  // namespace fgsync::sim
