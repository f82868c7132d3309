// One run's processes: its near end, and the far ends that it started one after the other.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "io/sync.h"
#include "scenario.h"

namespace fgsync::sim {

// No run, and nothing that a run leaves behind, may take longer (virtual time): connecting 15 s,
// the far side's patience 60 s twice, TCP's own 60 s, partitions of 90 s, and the transfer; and for
// each of a few losses TCP's 60 s and another 60 s to connect again.
inline constexpr std::chrono::seconds kRunBound{900};

struct Far {
  std::unique_ptr<Process> process;
  std::unique_ptr<FarEnd> end;
};

// The far side's host: a remote shell reaches it while the network does.
class FarStarter final : public transfer::FarHost {
 public:
  FarStarter(Scenario& scenario, Scenario::Ends& ends) : scenario_(scenario), ends_(ends) {}
  io::Task<Result<transfer::FarAddress>> start(std::chrono::milliseconds patience) override;
  io::Task<void> finish(bool succeeded) override;

 private:
  Scenario& scenario_;
  Scenario::Ends& ends_;
};

struct Scenario::Ends {
  std::vector<Far> fars;
  std::unique_ptr<Process> near;
  RunPlan plan;
  std::uint64_t near_boot = 0;
  io::TimePoint started;
  std::uint64_t missing = 0;       // bytes, at the start of each session, added up
  std::uint64_t bytes_before = 0;  // taken off the wire
  std::uint64_t connections_before = 0;
  std::uint64_t lost_before = 0;
  std::vector<std::string> differences;                        // that it has told
  std::optional<std::vector<std::string>> differences_before;  // that there were at its start
  bool in_company = false;  // another receiver has been at work on the target meanwhile
  std::unique_ptr<FarStarter> starter;
  std::unique_ptr<NearEnd> near_end;
  io::TaskGroup tasks;

  bool near_is_over() const { return near->finished() || !near->alive(); }
  bool is_over() const {
    return near->finished() && std::all_of(fars.begin(), fars.end(),
                                           [](const Far& far) { return far.process->finished(); });
  }
  Process& receiver() const { return plan.push ? *fars.back().process : *near; }
  bool is_receiving() const {
    const auto receives = [](const Process& process) {
      return process.alive() && !process.finished();
    };
    if (plan.dry_run) return false;
    if (!plan.push) return receives(*near);
    return std::any_of(fars.begin(), fars.end(),
                       [&](const Far& far) { return receives(*far.process); });
  }
  void leave_far_ends_alone() {
    for (const Far& far : fars) far.end->leave_alone();
  }
};

}  // namespace fgsync::sim
