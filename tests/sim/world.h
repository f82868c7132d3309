// Virtual time and the order of everything that happens: one queue of events, one thread. Whatever
// the two ends, their disks and the network do is an event here, and every choice comes from one
// seed, so that a run can be had again to the instruction.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "io/io.h"
#include "random.h"

namespace fgsync::sim {

// Whose code an event runs: a process's number. 0: nobody's.
using Actor = std::uint64_t;

class World {
 public:
  World(std::uint64_t seed, bool tracing) : random_(seed), tracing_(tracing) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  io::TimePoint now() const { return now_; }
  Random& random() { return random_; }

  Actor new_actor() { return ++actors_; }
  void after(io::Duration delay, std::function<void()> event, Actor actor = 0);
  // What is ready at once runs in an order of the seed's choosing.
  void soon(std::function<void()> event, Actor actor) {
    after(io::Duration(std::int64_t(random_.below(kSoonNanoseconds))), std::move(event), actor);
  }
  // Runs the next event; false when there is none: nothing can ever happen again.
  bool step();
  // In the middle of an event, between two calls of it: runs the next one if it comes within the
  // time that a call may take and is none of those who are in the middle of something themselves.
  // False if it was not run.
  bool let_others();
  std::uint64_t steps() const { return steps_; }

  // A line of the trace. Everything that a seed decides ends up in its hash, so that two traces are
  // alike when their hashes are.
  void trace(const char* what, std::uint64_t a = 0, std::uint64_t b = 0,
             const std::string& text = {});
  std::uint64_t trace_hash() const { return trace_hash_; }

  // A property that does not hold. The first one counts.
  void violate(const std::string& what);
  const std::optional<std::string>& violation() const { return violation_; }

 private:
  static constexpr std::uint64_t kSoonNanoseconds = 20'000;
  static constexpr std::chrono::milliseconds kCallTime{2};
  struct Event {
    io::TimePoint time;
    std::uint64_t sequence;
    Actor actor;
    std::function<void()> run;
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : sequence > other.sequence;
    }
  };

  Random random_;
  const bool tracing_;
  io::TimePoint now_{};
  std::priority_queue<Event> events_;
  std::vector<Actor> busy_;  // in the middle of an event, the innermost last
  Actor actors_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t trace_hash_ = 0xcbf29ce484222325;
  std::optional<std::string> violation_;
};

}  // namespace fgsync::sim
