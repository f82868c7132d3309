// Watches over a running session from its control worker, ten times a second: a cancel that was
// asked for, a session that gets nowhere, a far side whose starter is gone; and sends heartbeats.
//
// A session gets somewhere while each timeout sees limits::kProgressBytesMin of work on this side,
// or on the peer's by its heartbeats. What only the peer says it does counts for a day: longer than
// any step takes in which nothing moves between the two, and not for ever.
#pragma once

#include <functional>

#include "io/pause.h"
#include "transfer/session.h"

namespace fgsync::transfer {

class Watchdog {
 public:
  // `each_tick` is called on every look (progress lines, drains); a failure that it returns ends
  // the session. `patient` says that waiting is what was asked for (a bandwidth limit), not a
  // stall.
  Watchdog(Session& session, std::function<Status()> each_tick, std::function<bool()> patient);

  // Until stop() is called.
  io::Task<void> run();
  // On the control worker.
  void stop() { pause_.end(); }

 private:
  // How far one side has come when that was last far enough to count.
  struct Mark {
    std::uint64_t progress = 0;
    io::TimePoint since;
    void update(std::uint64_t now_at, io::TimePoint now);
  };
  void look();
  void send_heartbeat(io::TimePoint now);
  void look_for_a_stall(io::TimePoint now);

  Session& session_;
  const std::function<Status()> each_tick_;
  const std::function<bool()> patient_;
  io::Pause pause_;
  int looks_after_failure_ = 0;
  Mark own_;
  Mark peer_;
  io::TimePoint last_heartbeat_;
  io::TimePoint flushing_since_;
};

}  // namespace fgsync::transfer
