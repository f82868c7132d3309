// The simulator's command line. docs/testing.md explains it.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "campaign.h"

namespace fgsync::sim {
namespace {

struct Arguments {
  CampaignOptions campaign;
  std::optional<std::uint64_t> seed;
  bool trace = false;
  bool shrink = true;
  bool marks = false;
  ScenarioLimits limits;
  std::string seeds_file;
};

constexpr const char* kUsage =
    "usage: simulate --seeds=N [--first=S] [--jobs=J] [--failures=N] [--no-shrink] [--marks] "
    "[--traces]\n"
    "       simulate --seed=S [--trace] [--files=N] [--faults=N] [--skip-faults=N]\n"
    "       simulate --seeds-from=FILE\n";

bool parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    const std::string text(equals == std::string_view::npos ? "" : argument.substr(equals + 1));
    const std::uint64_t value = std::strtoull(text.c_str(), nullptr, 10);
    if (name == "--seeds") {
      arguments.campaign.seeds = value;
    } else if (name == "--first") {
      arguments.campaign.first = value;
    } else if (name == "--jobs") {
      arguments.campaign.jobs = unsigned(value);
    } else if (name == "--failures") {
      arguments.campaign.failures_max = value;
    } else if (name == "--no-shrink") {
      arguments.shrink = false;
    } else if (name == "--marks") {
      arguments.marks = true;
    } else if (name == "--traces") {
      arguments.campaign.traces = true;
    } else if (name == "--seed") {
      arguments.seed = value;
    } else if (name == "--trace") {
      arguments.trace = true;
    } else if (name == "--files") {
      arguments.limits.files_max = value;
    } else if (name == "--faults") {
      arguments.limits.faults_max = value;
    } else if (name == "--skip-faults") {
      arguments.limits.faults_skipped = value;
    } else if (name == "--seeds-from") {
      arguments.seeds_file = text;
    } else {
      std::fputs(kUsage, stderr);
      return false;
    }
  }
  return true;
}

using Number = unsigned long long;

void print_shrunk(std::uint64_t seed) {
  const ScenarioLimits limits = shrink(seed);
  std::string options = "--seed=" + std::to_string(seed);
  if (limits.files_max != UINT64_MAX) options += " --files=" + std::to_string(limits.files_max);
  if (limits.faults_max != UINT64_MAX) options += " --faults=" + std::to_string(limits.faults_max);
  if (limits.faults_skipped > 0) {
    options += " --skip-faults=" + std::to_string(limits.faults_skipped);
  }
  std::printf("replay: scripts/simulate %s --trace\n", options.c_str());
}

int run_one(const Arguments& arguments) {
  const Outcome outcome = Scenario(*arguments.seed, arguments.limits, arguments.trace).run();
  std::printf(
      "seed %llu: %d runs, %d of them good, %llu files, %llu faults, %llu steps, trace "
      "%016llx\n",
      Number(*arguments.seed), outcome.runs, outcome.good_runs, Number(outcome.files),
      Number(outcome.faults), Number(outcome.steps), Number(outcome.trace_hash));
  if (!outcome.violation.empty()) std::printf("VIOLATED: %s\n", outcome.violation.c_str());
  return outcome.violation.empty() ? 0 : 1;
}

// One seed at the start of a line, why it is there behind it.
int run_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "simulate: cannot read %s\n", path.c_str());
    return 2;
  }
  int seeds = 0;
  int violations = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::uint64_t seed = std::strtoull(line.c_str(), nullptr, 10);
    ++seeds;
    const Outcome first = run_apart(seed, {});
    const Outcome second = run_apart(seed, {});
    const bool differs = first.trace_hash != second.trace_hash;
    if (first.violation.empty() && !differs) continue;
    ++violations;
    std::printf("seed %llu: %s\n", Number(seed),
                differs ? "its trace differs from one time to the next" : first.violation.c_str());
  }
  std::printf("%d seeds, %d violations\n", seeds, violations);
  return violations == 0 ? 0 : 1;
}

int run_many(const Arguments& arguments) {
  const CampaignResult result = run_campaign(arguments.campaign);
  for (const FailedSeed& failed : result.failed) {
    if (arguments.shrink) print_shrunk(failed.seed);
  }
  if (arguments.marks) {
    for (const auto& [name, mark] : result.marks) {
      std::printf("mark %-40s %llu, first by seed %llu\n", name.c_str(), Number(mark.count),
                  Number(mark.first));
    }
  }
  std::printf("seeds %llu to %llu, %llu runs, %llu of them good, %llu steps, trace %016llx\n",
              Number(arguments.campaign.first),
              Number(arguments.campaign.first + arguments.campaign.seeds - 1), Number(result.runs),
              Number(result.good_runs), Number(result.steps), Number(result.hash));
  std::printf("%.1f s, %.0f seeds a second\n", result.seconds,
              double(result.seeds) / result.seconds);
  std::printf("%llu seeds, %zu violations\n", Number(result.seeds), result.failed.size());
  return result.failed.empty() ? 0 : 1;
}

}  // namespace
}  // namespace fgsync::sim

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // jobs share it, line by line
  fgsync::sim::Arguments arguments;
  if (!fgsync::sim::parse(argc, argv, arguments)) return 2;
  if (arguments.seed) return fgsync::sim::run_one(arguments);
  if (!arguments.seeds_file.empty()) return fgsync::sim::run_file(arguments.seeds_file);
  return fgsync::sim::run_many(arguments);
}
