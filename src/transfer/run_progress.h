// The progress of a run over all its sessions, as one that never runs backwards: a new session
// begins by looking what is there.
#pragma once

#include "fgsync/report.h"

namespace fgsync::transfer {

class RunProgress {
 public:
  // What to show, given the running session's own progress.
  ProgressSnapshot update(const ProgressSnapshot& session);
  // Later updates are of another session.
  void next_session() { is_first_ = false; }

 private:
  bool is_first_ = true;
  ProgressSnapshot shown_;
};

}  // namespace fgsync::transfer
