// --publish=tree: a session lands in a new tree beside the target, which takes the target's place
// when everything is in it. docs/publish.md has the order and its reasons.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "storage/state_directory.h"
#include "storage/tree_carrier.h"
#include "transfer/session.h"
#include "transfer/tree_target.h"
#include "transfer/workshop.h"

namespace fgsync::transfer {

class TreeSwitch {
 public:
  // `path` is the target as typed, `transfer` names the sources: see transfer_identity().
  TreeSwitch(Session& session, std::string path, const wire::Checksum& transfer);

  // The new tree, which has all that the old one has. Waits for other runs into the target as
  // TargetLock does, with the same failures; kUnsupported for a target that cannot be switched. On
  // the control worker.
  io::Task<Result<io::FileHandle>> prepare();

  // The rest blocks. The root of the old tree, as it was before this run; kNotFound: there is none.
  Result<io::FileStatus> old_root();
  // An entry of the manifest; only from one thread.
  void announce(const std::string& path);
  // A directory in the new tree stands in the way of what must have its name, which is at `path`:
  // it goes if it is not one of the old tree but what an earlier run has left. True then.
  Result<bool> makes_way(const std::string& path, const io::FileHandle& directory,
                         const std::string& name);
  // When all is in place but the directories' own metadata: what an earlier run has put into the
  // tree and this one does not bring becomes what the old tree has.
  Status restore();
  // When the new tree is whole and durable. On failure either of the two stands there.
  Status publish();
  // After that, and gives up the locks. What cannot be removed is left, with a note.
  void remove_old_tree();
  // Or it is not going to be published: it is left for a later run, or removed.
  void leave(bool keep);

 private:
  Result<bool> try_lock();
  Result<bool> lock_old_tree();
  Status fill();
  Result<std::unique_ptr<storage::TreeCarrier>> make_carrier();
  bool has_old_directory(const std::string& path);
  Status check_old_tree();
  void tidy_old_tree();

  Session& session_;
  io::FileSystem& files_;
  const std::string path_;
  const wire::Checksum transfer_;
  const bool durable_;
  const storage::TreeStep step_;
  TreeTarget target_;
  Workshop workshop_;
  io::FileHandle old_;  // the old tree, if there is one
  io::FileTime old_mtime_;
  storage::StateLock old_lock_;
  std::string holder_;                    // of the lock that could not be had, for messages
  bool goes_on_ = false;                  // in the tree of an earlier run
  std::vector<std::uint64_t> announced_;  // hashes of paths, if it goes on
};

}  // namespace fgsync::transfer
