// Many seeds, several processes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scenario.h"

namespace fgsync::sim {

struct FailedSeed {
  std::uint64_t seed = 0;
  std::string violation;
};

// How often a mark was reached, and by which seed first.
struct MarkCount {
  std::uint64_t count;
  std::uint64_t first;
};

struct CampaignResult {
  std::uint64_t seeds = 0;
  std::uint64_t runs = 0;
  std::uint64_t good_runs = 0;
  std::uint64_t steps = 0;
  std::uint64_t hash = 0;  // of all traces
  std::vector<FailedSeed> failed;
  std::map<std::string, MarkCount> marks;
  double seconds = 0;
};

struct CampaignOptions {
  std::uint64_t first = 1;
  std::uint64_t seeds = 1;
  unsigned jobs = 1;
  std::uint64_t failures_max = 20;  // stop after so many
  bool traces = false;              // a line for each seed with its trace's hash
};

// Each job is a process of its own, so that a seed that crashes is a violation like any other.
CampaignResult run_campaign(const CampaignOptions& options);

// One seed in a process of its own, so that a crash can be told from a violation.
Outcome run_apart(std::uint64_t seed, const ScenarioLimits& limits);

// The fewest files and faults with which the seed still fails.
ScenarioLimits shrink(std::uint64_t seed);

}  // namespace fgsync::sim
