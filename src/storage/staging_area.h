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
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "storage/directory_tree.h"

namespace fgsync::storage {

// Thread-safe. Everything blocks: call it inside a blocking job.
class StagingArea {
 public:
  // Makes nothing yet: directories appear with the first staged file, so that a run that changes
  // nothing leaves the target untouched.
  StagingArea(io::FileSystem& files, std::string session_name);

  // The staging directory on the mount of `directory`; made, with its state directory, inside
  // `directory` itself when this is the first use on that mount (callers come first with the
  // topmost directory of a mount: the root at the start). `mount` is FileStatus::mount of
  // `directory`.
  Result<DirectoryReference> on_mount(std::uint64_t mount, const DirectoryReference& directory);

  // A staging name that was not used before in this run.
  std::string next_name();

  // How many staging directories of dead runs were removed.
  std::uint64_t removed_leftovers() const;

  // Removes everything this run has staged and not renamed, and the state directories if nothing
  // else is in them. Called at the end of every run, successful or not.
  Status clean();

 private:
  struct Area {
    DirectoryReference parent;   // holds .fgsync
    DirectoryReference state;    // .fgsync
    DirectoryReference staging;  // .fgsync/staging-<session>
    std::string staging_name;
  };
  Result<Area> make_area(const DirectoryReference& directory);
  // One attempt. ENOENT, EEXIST or EWOULDBLOCK: another run made or removed the same names at this
  // moment.
  Result<Area> try_make_area(const DirectoryReference& directory, const std::string& staging_name);
  void remove_leftovers(const Area& area);
  bool remove_leftover(const io::FileHandle& state, const std::string& name);

  io::FileSystem& files_;
  const std::string session_name_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Area> areas_;  // guarded by mutex_
  std::uint64_t next_number_ = 0;        // guarded by mutex_
  std::uint64_t removed_leftovers_ = 0;  // guarded by mutex_
};

}  // namespace fgsync::storage
