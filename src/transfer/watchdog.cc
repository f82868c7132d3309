#include "transfer/watchdog.h"

#include <algorithm>
#include <string>

#include "base/limits.h"
#include "base/mark.h"

namespace fgsync::transfer {
namespace {

constexpr std::chrono::milliseconds kTick{100};
constexpr std::chrono::milliseconds kHeartbeatInterval{1000};
constexpr int kLooksAfterFailure = 10;  // one second
// A flush may take this long before it counts as a stall; a disk that needs more is broken.
constexpr std::chrono::minutes kFlushPatience{10};
// What the peer says it does, while nothing is done here.
constexpr std::chrono::hours kClaimPatience{24};

std::string seconds_text(std::chrono::milliseconds time) {
  std::string text = std::to_string(time.count() / 1000);
  if (time.count() % 1000 != 0) text += "." + std::to_string(time.count() % 1000 / 100);
  return text;
}

}  // namespace

Watchdog::Watchdog(Session& session, std::function<Status()> each_tick,
                   std::function<bool()> patient)
    : session_(session),
      each_tick_(std::move(each_tick)),
      patient_(std::move(patient)),
      pause_(session.control_io()),
      own_{0, session.environment().now()},
      peer_(own_),
      last_heartbeat_(own_.since),
      flushing_since_(own_.since) {}

io::Task<void> Watchdog::run() {
  while (true) {
    const bool on = co_await pause_.sleep_for(kTick);
    if (!on) co_return;
    look();
  }
}

void Watchdog::look() {
  const io::TimePoint now = session_.environment().now();
  if (session_.failed()) {
    // A peer that does not even take our last word must not keep us.
    if (++looks_after_failure_ >= kLooksAfterFailure) session_.control().shutdown();
    return;
  }
  if (session_.cancel().requested()) {
    mark("watchdog_cancelled");
    session_.fail(Status(ErrorCode::kCancelled, "interrupted"));
    return;
  }
  session_.settle_lost_stream(/*at_once=*/false);
  Status tick = each_tick_();
  if (!tick.ok()) {
    mark("watchdog_starter_gone");
    session_.fail(tick);
  }
  if (session_.failed()) return;

  if (!session_.is_flushing()) {
    flushing_since_ = now;
  } else if (now - flushing_since_ < kFlushPatience) {
    session_.add_step();
  }
  // The peer hears of it by the heartbeat: it must not take the wait for a stall either.
  if (patient_()) session_.add_step();
  send_heartbeat(now);
  look_for_a_stall(now);
}

void Watchdog::send_heartbeat(io::TimePoint now) {
  const std::chrono::milliseconds timeout = session_.parameters.timeout;
  const std::chrono::milliseconds interval =
      timeout.count() > 0 ? std::min(kHeartbeatInterval, timeout / 4) : kHeartbeatInterval;
  if (now - last_heartbeat_ < interval) return;
  last_heartbeat_ = now;
  session_.push(session_.heartbeat());
}

void Watchdog::look_for_a_stall(io::TimePoint now) {
  own_.update(session_.progress(), now);
  peer_.update(session_.peer_progress(), now);
  const std::chrono::milliseconds timeout = session_.parameters.timeout;
  if (timeout.count() == 0) return;
  const bool claims_count = now - own_.since < kClaimPatience;
  const io::TimePoint since = claims_count ? std::max(own_.since, peer_.since) : own_.since;
  // What goes into socket buffers looks like progress for a while; a living peer's heartbeats can't
  // be imitated by them.
  if (now - since >= timeout || session_.silence() >= timeout) {
    mark("watchdog_timeout");
    session_.fail(Status(ErrorCode::kTimeout, "timeout: no progress with " + session_.peer() +
                                                  " for " + seconds_text(timeout) + " s"));
  }
}

void Watchdog::Mark::update(std::uint64_t now_at, io::TimePoint now) {
  if (now_at < progress || now_at - progress < limits::kProgressBytesMin) return;
  progress = now_at;
  since = now;
}

}  // namespace fgsync::transfer
