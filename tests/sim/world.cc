#include "world.h"

#include <algorithm>
#include <cstdio>

namespace fgsync::sim {

void World::after(io::Duration delay, std::function<void()> event, Actor actor) {
  events_.push(Event{now_ + delay, sequence_++, actor, std::move(event)});
}

bool World::step() {
  if (events_.empty()) return false;
  // The queue orders by time and sequence alone, so that taking the function out is safe.
  std::function<void()> run = std::move(const_cast<Event&>(events_.top()).run);
  now_ = events_.top().time;
  busy_.push_back(events_.top().actor);
  events_.pop();
  ++steps_;
  run();
  busy_.pop_back();
  return true;
}

bool World::let_others() {
  if (events_.empty() || events_.top().time > now_ + kCallTime) return false;
  const Actor actor = events_.top().actor;
  const bool busy = std::find(busy_.begin(), busy_.end(), actor) != busy_.end();
  return (actor == 0 || !busy) && step();
}

void World::trace(const char* what, std::uint64_t a, std::uint64_t b, const std::string& text) {
  const auto mix = [this](std::uint64_t value) {
    trace_hash_ = (trace_hash_ ^ value) * 0x100000001b3;
    trace_hash_ ^= trace_hash_ >> 29;
  };
  mix(std::uint64_t(now_.time_since_epoch().count()));
  for (const char* letter = what; *letter != 0; ++letter) mix(std::uint64_t(*letter));
  mix(a);
  mix(b);
  for (const char letter : text) mix(std::uint64_t(static_cast<unsigned char>(letter)));
  if (!tracing_) return;
  std::printf("%14.6f ms  %-22s %llu %llu %s\n", double(now_.time_since_epoch().count()) / 1e6,
              what, static_cast<unsigned long long>(a), static_cast<unsigned long long>(b),
              text.c_str());
}

void World::violate(const std::string& what) {
  trace("VIOLATION", 0, 0, what);
  if (!violation_) violation_ = what;
}

}  // namespace fgsync::sim
