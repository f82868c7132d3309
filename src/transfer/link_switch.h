// Switching a target that is a symlink to a directory: the new tree gets a name beside the old one,
// and the link leads there.
#pragma once

#include <string>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "transfer/session.h"
#include "transfer/tree_target.h"

namespace fgsync::transfer {

// Not thread-safe; everything blocks. All that it refers to must outlive it.
class LinkSwitch {
 public:
  LinkSwitch(Session& session, const TreeTarget& target, const io::FileHandle& workshop)
      : session_(session), files_(session.files()), target_(target), workshop_(workshop) {}

  // The tree in the workshop takes the target's place; the old one stays, for remove_previous().
  Status run();
  // After a run that was killed: a tree that has got its name, but not the link, goes back into the
  // workshop; one that has the link is done with, and what it replaced is removed.
  Status recover();
  // A directory that has made way. One that was not made for the link may have other readers, and
  // stays, with a note.
  Status remove_previous(const std::string& name);

 private:
  Status forget(const char* name);
  Status replace_link(const std::string& next);

  Session& session_;
  io::FileSystem& files_;
  const TreeTarget& target_;
  const io::FileHandle& workshop_;
};

}  // namespace fgsync::transfer
