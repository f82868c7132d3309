// One run at a time changes a target: a second one waits, or gives up, as its user asked.
#pragma once

#include <string>

#include "storage/directory_tree.h"
#include "storage/state_directory.h"
#include "transfer/session.h"

namespace fgsync::transfer {

class TargetLock {
 public:
  // `named_by` is the path that leads to the root, as typed; empty if none does: a new tree.
  TargetLock(Session& session, storage::DirectoryTree& directories, std::string root_display,
             std::string named_by)
      : session_(session),
        directories_(directories),
        root_display_(std::move(root_display)),
        named_by_(std::move(named_by)) {}

  // What becomes of a target that has no state directory, so that nobody holds it.
  enum class Missing { kMake, kLeave };

  // True once the target is this run's alone, at once from then on; or if it has been left as it
  // is. False when the session has failed (with kLocked where another run holds the lock and the
  // user does not want to wait). The wait is no stall: both sides hear that this one lives. On the
  // control worker.
  io::Task<bool> take(Missing missing);
  // Whether the target is this run's alone (as far as its file system tells).
  bool is_taken() const { return taken_; }

  // Removes the state directory, if this run holds it and nothing else is in it. Blocks.
  void tidy();
  void release() { lock_.release(); }

 private:
  Result<bool> try_take(Missing missing);
  // Another run may have switched the target as a whole meanwhile. True if the root is still the
  // one; it is now if false, and nothing was planned yet.
  Result<bool> look_at_root();

  Session& session_;
  storage::DirectoryTree& directories_;
  const std::string root_display_;
  const std::string named_by_;
  storage::StateLock lock_;
  bool taken_ = false;
};

}  // namespace fgsync::transfer
