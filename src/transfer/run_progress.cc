#include "transfer/run_progress.h"

#include <algorithm>

namespace fgsync::transfer {

ProgressSnapshot RunProgress::update(const ProgressSnapshot& session) {
  ProgressSnapshot next = session;
  if (!is_first_) {
    // What a session wants is what is still missing: all of the run's bytes but that are there.
    // While it does not know yet, nothing that was shown changes.
    if (session.total_known) {
      if (!shown_.total_known) shown_.bytes_total = shown_.bytes_done + session.bytes_total;
      const std::uint64_t left =
          session.bytes_total - std::min(session.bytes_total, session.bytes_done);
      next.bytes_total = std::max(shown_.bytes_total, left);
      next.bytes_done = next.bytes_total - left;
    } else {
      next.bytes_total = std::max(shown_.bytes_total, session.bytes_total);
    }
    next.total_known |= shown_.total_known;
    next.bytes_done = std::max(next.bytes_done, shown_.bytes_done);
    next.bytes_total = std::max(next.bytes_total, next.bytes_done);
    next.files_done = std::max(next.files_done, shown_.files_done);
    next.files_total = std::max(next.files_total, shown_.files_total);
  }
  shown_ = next;
  return next;
}

}  // namespace fgsync::transfer
