#include "campaign.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/mark.h"

namespace fgsync::sim {
namespace {

constexpr std::size_t kTextBytes = 400;

struct SharedFailure {
  std::uint64_t seed;
  char text[kTextBytes];
};

constexpr std::size_t kFailuresMax = 64;
constexpr std::size_t kMarksMax = 256;
constexpr std::size_t kMarkBytes = 56;

struct SharedMark {
  char name[kMarkBytes];
  std::uint64_t count;
  std::uint64_t first;  // the seed that reached it first
};

// What a job and its parent share.
struct JobState {
  std::atomic<std::uint64_t> current;  // the seed that runs
  std::atomic<std::uint64_t> next;     // the one after it
  std::uint64_t seeds;
  std::uint64_t runs;
  std::uint64_t good_runs;
  std::uint64_t steps;
  std::uint64_t hash;
  std::atomic<std::uint64_t> failures;
  SharedFailure failed[kFailuresMax];
  SharedMark marks[kMarksMax];
};

JobState* marked_state = nullptr;  // this process's job

void count_mark(const char* name) {
  for (SharedMark& mark : marked_state->marks) {
    if (mark.count > 0 && std::strcmp(mark.name, name) != 0) continue;
    if (mark.count++ > 0) return;
    std::snprintf(mark.name, kMarkBytes, "%s", name);
    mark.first = marked_state->current;
    return;
  }
}

JobState* make_states(unsigned jobs) {
  void* const memory = ::mmap(nullptr, sizeof(JobState) * jobs, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  auto* const states = static_cast<JobState*>(memory);
  for (unsigned i = 0; i < jobs; ++i) new (states + i) JobState{};
  return states;
}

void note_failure(JobState& state, std::uint64_t seed, const std::string& text) {
  if (state.failures == kFailuresMax) return;
  SharedFailure& failure = state.failed[state.failures];
  failure.seed = seed;
  std::snprintf(failure.text, kTextBytes, "%s", text.c_str());
  ++state.failures;
}

// At once: a long campaign may be stopped before its end.
void report(JobState& state, std::uint64_t seed, const std::string& text) {
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), text.c_str());
  std::fflush(stdout);
  note_failure(state, seed, text);
}

std::uint64_t failures_of(const JobState* states, unsigned jobs) {
  std::uint64_t failures = 0;
  for (unsigned i = 0; i < jobs; ++i) failures += states[i].failures;
  return failures;
}

void run_job(JobState* states, unsigned job, unsigned jobs, const CampaignOptions& options) {
  JobState& state = states[job];
  // Huge pages would zero 2 MiB for each buffer slot that a run touches.
  (void)::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  marked_state = &state;
  mark_observer = &count_mark;
  const std::uint64_t end = options.first + options.seeds;
  for (;;) {
    const std::uint64_t seed = state.next.load();
    if (seed >= end || failures_of(states, jobs) >= options.failures_max) return;
    state.current = seed;
    state.next = seed + jobs;
    const Outcome outcome = Scenario(seed, {}, false).run();
    ++state.seeds;
    state.runs += std::uint64_t(outcome.runs);
    state.good_runs += std::uint64_t(outcome.good_runs);
    state.steps += outcome.steps;
    state.hash ^= outcome.trace_hash * (2 * seed + 1);
    if (options.traces) {
      std::printf("seed %llu: trace %016llx\n", static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(outcome.trace_hash));
    }
    if (!outcome.violation.empty()) report(state, seed, outcome.violation);
  }
}

pid_t start_job(JobState* states, unsigned job, unsigned jobs, const CampaignOptions& options) {
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  run_job(states, job, jobs, options);
  std::exit(0);
}

std::string death_of(int status) {
  if (WIFSIGNALED(status)) return std::string("crashed: ") + ::strsignal(WTERMSIG(status));
  return "ended with " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

CampaignResult run_campaign(const CampaignOptions& options) {
  const auto started = std::chrono::steady_clock::now();
  const unsigned jobs = std::max(1u, options.jobs);
  JobState* const states = make_states(jobs);
  std::vector<pid_t> pids(jobs);
  for (unsigned i = 0; i < jobs; ++i) {
    states[i].next = options.first + i;
    pids[i] = start_job(states, i, jobs, options);
  }
  for (unsigned left = jobs; left > 0;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, 0);
    const auto found = std::find(pids.begin(), pids.end(), pid);
    if (found == pids.end()) continue;
    const auto job = unsigned(found - pids.begin());
    JobState& state = states[job];
    if (status == 0) {
      --left;
      continue;
    }
    ++state.seeds;
    report(state, state.current, death_of(status));
    *found = start_job(states, job, jobs, options);
  }
  CampaignResult result;
  for (unsigned i = 0; i < jobs; ++i) {
    const JobState& state = states[i];
    result.seeds += state.seeds;
    result.runs += state.runs;
    result.good_runs += state.good_runs;
    result.steps += state.steps;
    result.hash ^= state.hash;
    for (const SharedMark& mark : state.marks) {
      if (mark.count == 0) continue;
      MarkCount& total = result.marks.try_emplace(mark.name, 0, mark.first).first->second;
      total = {total.count + mark.count, std::min(total.first, mark.first)};
    }
    for (std::uint64_t j = 0; j < state.failures; ++j) {
      result.failed.push_back({state.failed[j].seed, state.failed[j].text});
    }
  }
  ::munmap(states, sizeof(JobState) * jobs);
  std::sort(result.failed.begin(), result.failed.end(),
            [](const auto& a, const auto& b) { return a.seed < b.seed; });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  result.seconds = took.count();
  return result;
}

Outcome run_apart(std::uint64_t seed, const ScenarioLimits& limits) {
  JobState* const state = make_states(1);
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    // What an assertion says of itself has been said before.
    if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(3);
    const Outcome outcome = Scenario(seed, limits, false).run();
    state->runs = outcome.faults;
    state->good_runs = outcome.files;
    state->hash = outcome.trace_hash;
    if (!outcome.violation.empty()) note_failure(*state, seed, outcome.violation);
    ::_exit(0);
  }
  int status = 0;
  (void)::waitpid(pid, &status, 0);
  if (status != 0) note_failure(*state, seed, death_of(status));
  Outcome outcome;
  outcome.faults = state->runs;
  outcome.files = state->good_runs;
  outcome.trace_hash = state->hash;
  if (state->failures > 0) outcome.violation = state->failed[0].text;
  ::munmap(state, sizeof(JobState));
  return outcome;
}

ScenarioLimits shrink(std::uint64_t seed) {
  ScenarioLimits best;
  const auto fails = [seed](const ScenarioLimits& limits) {
    return !run_apart(seed, limits).violation.empty();
  };
  for (std::uint64_t files = 0; files < 40; ++files) {
    ScenarioLimits fewer = best;
    fewer.files_max = files;
    if (!fails(fewer)) continue;
    best = fewer;
    break;
  }
  for (std::uint64_t faults = 0; faults < 12; ++faults) {
    ScenarioLimits fewer = best;
    fewer.faults_max = faults;
    if (!fails(fewer)) continue;
    best = fewer;
    break;
  }
  while (best.faults_max > 0 && best.faults_max != UINT64_MAX) {
    ScenarioLimits fewer = best;
    ++fewer.faults_skipped;
    --fewer.faults_max;
    if (!fails(fewer)) break;
    best = fewer;
  }
  return best;
}

}  // namespace fgsync::sim
