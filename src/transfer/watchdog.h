// Watches over a running session from its control worker, ten times a second: a cancel that was
// asked for, a peer that makes no progress, a far side whose starter is gone; and sends heartbeats.
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
  void look();
  Session& session_;
  const std::function<Status()> each_tick_;
  const std::function<bool()> patient_;
  io::Pause pause_;
  int looks_after_failure_ = 0;
  std::uint64_t last_progress_ = 0;
  std::uint64_t last_peer_progress_ = 0;
  io::TimePoint last_advance_;
  io::TimePoint last_heartbeat_;
  io::TimePoint flushing_since_;
};

}  // namespace fgsync::transfer
