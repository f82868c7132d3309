// The remote shell of a simulated run.
#include "scenario_ends.h"

namespace fgsync::sim {

io::Task<Result<transfer::FarAddress>> FarStarter::start(std::chrono::milliseconds patience) {
  io::Io& io = ends_.near->runtime().control();
  World& world = ends_.near->world();
  // What a remote shell takes to get there; it tries for as long as it may.
  const io::TimePoint give_up = world.now() + patience;
  const io::Duration time(std::int64_t(world.random().skewed(300'000'000)));
  co_await io::sleep_until(io, world.now() + time);
  while (scenario_.wire_.is_closed() && world.now() < give_up) {
    co_await io::sleep_until(io, world.now() + std::chrono::milliseconds(200));
  }
  if (!ends_.near->alive()) co_return Status(ErrorCode::kCancelled, "dead");
  const Status failed(ErrorCode::kRemoteShellFailed, "the remote shell failed");
  if (scenario_.wire_.is_closed()) co_return failed;
  std::optional<transfer::FarAddress> address = scenario_.start_far(ends_);
  if (!address) co_return failed;
  co_return *address;
}

// The shell hears that it is not needed any more, and so does what it started, sooner or later.
io::Task<void> FarStarter::finish(bool /*succeeded*/) {
  if (ends_.fars.empty() || !ends_.near->alive()) co_return;
  World& world = ends_.near->world();
  FarEnd* const end = ends_.fars.back().end.get();
  Process* const process = ends_.fars.back().process.get();
  const bool at_once = world.random().percent(80);
  const io::Duration later(
      std::int64_t(world.random().skewed(at_once ? 20'000'000 : 3'000'000'000)));
  world.after(later, [end] { end->leave_alone(); });
  // As long as the program waits for its shell to end.
  const io::TimePoint give_up = world.now() + std::chrono::milliseconds(500);
  while (!process->finished() && world.now() < give_up) {
    co_await io::sleep_until(ends_.near->runtime().control(),
                             world.now() + std::chrono::milliseconds(20));
  }
}

}  // namespace fgsync::sim
