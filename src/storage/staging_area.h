// Where files are written before they get their final names: a hidden directory, mode 0700, on the
// target's own file system, one per run and mount. A final name appears only by rename out of it.
//
//   TARGET/.fgsync/staging-<session>/<number>
//
// The run's staging directory is locked while the run lives; what a dead run left is found by its
// lock being free, and removed by the next run. Where the file system has no locks the dead can't
// be told from the living, and leftovers stay.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "storage/directory_tree.h"

namespace fgsync::storage {

// What becomes of the staging directory of a run that is dead.
enum class Leftover : std::uint8_t {
  kRemove,
  kKeep,      // for a run that can use it
  kTakeOver,  // this run goes on in it
};
// Asked with the directory, whose lock this run holds. At most one on each mount can be taken over:
// the judge does not ask for it where it may not.
using JudgeLeftover =
    std::function<Leftover(const DirectoryReference& staging, bool may_take_over)>;

inline Leftover remove_leftover(const DirectoryReference& /*staging*/, bool /*may_take_over*/) {
  return Leftover::kRemove;
}

// Thread-safe. Everything blocks: call it inside a blocking job.
class StagingArea {
 public:
  // Makes nothing yet: directories appear with the first staged file, so that a run that changes
  // nothing leaves the target untouched. `judge` is called under the lock of this class.
  StagingArea(io::FileSystem& files, std::string session_name,
              JudgeLeftover judge = remove_leftover);

  // The staging directory on the mount of `directory`; made, with its state directory, inside
  // `directory` itself when this is the first use on that mount (callers come first with the
  // topmost directory of a mount: the root at the start). `mount` is FileStatus::mount of
  // `directory`.
  Result<DirectoryReference> on_mount(std::uint64_t mount, const DirectoryReference& directory);

  // A staging name that was not used before in this run.
  std::string next_name();

  // No name below `number` is given from now on: a taken over directory's journal knows it.
  void skip_names_below(std::uint64_t number);

  // Settles what dead runs have left there, if anything, although nothing was staged. It is on that
  // mount. Best effort.
  void look_for_leftovers(std::uint64_t mount, const DirectoryReference& directory);

  // How many staging directories of dead runs were removed.
  std::uint64_t removed_leftovers() const;

  // The names of the staging directory and of what holds it are durable.
  Status sync_names(const io::FileHandle& staging);

  // Removes everything this run has staged and not renamed, and the state directories if nothing
  // else is in them; but nothing of the staging directories in `kept`, unless the file system has
  // no locks: then no later run could use it. Called at the end of every run, successful or not.
  Status clean(const std::set<const io::FileHandle*>& kept = {});

 private:
  struct Area {
    DirectoryReference parent;   // holds .fgsync
    DirectoryReference state;    // .fgsync
    DirectoryReference staging;  // .fgsync/staging-<session>
    std::string staging_name;
    bool has_locks = false;  // a later run can tell that this one is dead
  };
  Result<Area> make_area(const DirectoryReference& directory);
  // One attempt. ENOENT, EEXIST or EWOULDBLOCK: another run made or removed the same names at this
  // moment.
  Result<Area> try_make_area(const DirectoryReference& directory, const std::string& staging_name);
  // May replace what is new in `area` by a directory that is taken over.
  void settle_leftovers(Area& area);
  void settle_leftover(Area& area, const std::string& name, bool& taken_over);
  void take_over(Area& area, DirectoryReference staging, const std::string& name);

  io::FileSystem& files_;
  const std::string session_name_;
  const JudgeLeftover judge_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Area> areas_;  // guarded by mutex_
  std::uint64_t next_number_ = 0;        // guarded by mutex_
  std::uint64_t removed_leftovers_ = 0;  // guarded by mutex_
};

}  // namespace fgsync::storage
