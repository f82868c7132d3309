// The two entry points: a run as its user sees it, and the far side that such a run starts.
#pragma once

#include <atomic>
#include <string>

#include "fgsync/options.h"
#include "fgsync/report.h"

namespace fgsync {

// Asks a run to end. `request()` may be called from a signal handler and from any thread; it is
// noticed within a tenth of a second.
class CancelToken {
 public:
  void request() { requested_.store(true, std::memory_order_relaxed); }
  bool requested() const { return requested_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> requested_{false};
};

// Told what happens, on the thread that called replicate().
class Observer {
 public:
  virtual ~Observer() = default;
  // About ten times a second.
  virtual void on_progress(const ProgressSnapshot& snapshot) = 0;
  // Something worth one line at once, and again in the report's notes.
  virtual void on_note(const std::string& note) = 0;
  // With TransferOptions::report_changes (and in a dry run): each entry that is changed, once it
  // is.
  virtual void on_change(const EntryChange& change) = 0;
  // With TransferOptions::compare: how the target differs from the source, in no order.
  virtual void on_difference(const Difference& /*difference*/) {}
};

// Replicates options.sources to options.target and returns when everything is settled. Blocks;
// starts and ends its own threads. Never throws; whatever happens is in the report.
TransferReport replicate(const TransferOptions& options, Observer& observer, CancelToken& cancel);

// The far side of a run over a remote shell (`fgsync --serve`): reads the request from standard
// input, offers one session on one private address, prints how to reach it on standard output,
// serves it, and ends. Returns the exit status. It ends as well when standard input closes: the one
// who started it is gone.
int serve(CancelToken& cancel);

// The engines, transports and ciphers that this build and host offer, a line each ("io engines:
// uring posix").
std::vector<std::string> capabilities();

// Version of the program: "0.1.0".
const char* version_string();

// The documented exit status for one error code that ended a session, and for a whole report: of
// the session's status and what its single paths amount to, the weightier by the order 40, 12, 11,
// 10/30, 23, 25, 24. A session that ended for a reason outside that order (usage, refused,
// cancelled...) keeps its own status.
int exit_status_of(ErrorCode code);
int exit_status_of(const TransferReport& report);

}  // namespace fgsync
