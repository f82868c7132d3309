#include "storage/staging_area.h"

#include <cerrno>
#include <utility>
#include <vector>

#include "base/mark.h"
#include "storage/tree_walker.h"

namespace fgsync::storage {
namespace {

constexpr std::string_view kStagingPrefix = "staging-";
constexpr std::uint32_t kPrivateMode = 0700;
// Each lost race means that another run started or ended at that very moment.
constexpr int kAttemptsMax = 100;
constexpr std::size_t kListedNames = 1024;

DirectoryReference share(io::FileHandle handle) {
  return std::make_shared<const io::FileHandle>(std::move(handle));
}

bool is_lost_race(const Status& status) {
  const int reason = status.system_errno();
  return reason == ENOENT || reason == EEXIST || reason == EWOULDBLOCK;
}

// Opens the state directory, making it where it is missing. ENOENT: another run has removed it in
// between.
Result<io::FileHandle> open_state(io::FileSystem& files, const io::FileHandle& parent) {
  const std::string name = kStateDirectoryName;
  const Status made = files.make_directory(parent, name, kPrivateMode);
  if (!made.ok() && made.system_errno() != EEXIST) return made.with_context(name);
  auto state = files.open_directory(parent, name);
  if (!state.ok()) return state.status().with_context(name);
  auto status = files.stat(*state);
  if (!status.ok()) return status.status().with_context(name);
  // Others must not be able to put names into it.
  if ((status->mode & 077u) != 0) {
    FGSYNC_RETURN_IF_ERROR(files.set_mode(*state, kPrivateMode).with_context(name));
  }
  return state;
}

// Calls `visit(name)` for each name in the directory. Removing names meanwhile is fine: readdir(3)
// leaves open only whether names added meanwhile appear.
template <typename Visit>
Status for_each_name(io::FileSystem& files, const io::FileHandle& directory, Visit visit) {
  auto reader = files.list(directory);
  if (!reader.ok()) return reader.status();
  std::vector<io::DirectoryEntry> entries;
  for (;;) {
    entries.clear();
    auto more = (*reader)->next(kListedNames, entries);
    if (!more.ok()) return more.status();
    if (!*more) return Status();
    for (const io::DirectoryEntry& entry : entries) visit(entry.name);
  }
}

// Removes the files in a staging directory; it holds nothing else, and what else is found there
// stays.
Status remove_files(io::FileSystem& files, const io::FileHandle& staging) {
  Status first;
  const Status listed = for_each_name(files, staging, [&](const std::string& name) {
    Status removed = files.unlink(staging, name);
    const bool failed = !removed.ok() && removed.system_errno() != ENOENT;
    if (failed && first.ok()) first = std::move(removed);
  });
  return first.ok() ? listed : first;
}

// Whether the name still stands for the open directory.
Result<bool> is_named(io::FileSystem& files, const io::FileHandle& base, const std::string& name,
                      const io::FileHandle& open) {
  auto named = files.stat_at(base, name);
  if (!named.ok()) return named.status();
  auto held = files.stat(open);
  if (!held.ok()) return held.status();
  return named->device == held->device && named->inode == held->inode;
}

}  // namespace

StagingArea::StagingArea(io::FileSystem& files, std::string session_name)
    : files_(files), session_name_(std::move(session_name)) {}

Result<DirectoryReference> StagingArea::on_mount(std::uint64_t mount,
                                                 const DirectoryReference& directory) {
  const std::lock_guard lock(mutex_);
  const auto found = areas_.find(mount);
  if (found != areas_.end()) return found->second.staging;
  auto area = make_area(directory);
  if (!area.ok()) return area.status();
  return areas_.emplace(mount, std::move(*area)).first->second.staging;
}

Result<StagingArea::Area> StagingArea::make_area(const DirectoryReference& directory) {
  Status last;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    // A new name each time: who removed the last one may still hold its lock for a moment.
    std::string name(kStagingPrefix);
    name += session_name_;
    if (attempt > 0) name.append(".").append(std::to_string(attempt));
    auto area = try_make_area(directory, name);
    if (area.ok()) {
      remove_leftovers(*area);
      return area;
    }
    last = area.status();
    if (!is_lost_race(last)) break;
    mark("staging_lost_race");
  }
  return last;
}

Result<StagingArea::Area> StagingArea::try_make_area(const DirectoryReference& directory,
                                                     const std::string& staging_name) {
  auto state = open_state(files_, *directory);
  if (!state.ok()) return state.status();
  FGSYNC_RETURN_IF_ERROR(files_.make_directory(*state, staging_name, kPrivateMode));
  auto staging = files_.open_directory(*state, staging_name);
  if (!staging.ok()) return staging.status();
  auto locked = files_.try_lock(*staging);
  if (!locked.ok()) return locked.status();
  // Until the lock was taken it looked like a leftover, and another run may have removed it as one.
  if (!*locked) return Status::from_errno(EWOULDBLOCK, "locking the staging directory");
  auto named = is_named(files_, *state, staging_name, *staging);
  if (!named.ok()) return named.status();
  if (!*named) return Status::from_errno(ENOENT, "locking the staging directory");
  return Area{directory, share(std::move(*state)), share(std::move(*staging)), staging_name};
}

std::string StagingArea::next_name() {
  const std::lock_guard lock(mutex_);
  return std::to_string(next_number_++);
}

std::uint64_t StagingArea::removed_leftovers() const {
  const std::lock_guard lock(mutex_);
  return removed_leftovers_;
}

// Best effort: what can't be removed now stays for a later run, and is no reason to fail this one.
void StagingArea::remove_leftovers(const Area& area) {
  // Our own directory is locked. If it can be locked once more, this file system has no locks.
  auto again = files_.open_directory(*area.state, area.staging_name);
  if (!again.ok()) return;
  auto unlocked = files_.try_lock(*again);
  if (!unlocked.ok() || *unlocked) {
    mark("staging_without_locks");
    return;
  }
  (void)for_each_name(files_, *area.state, [&](const std::string& name) {
    if (!name.starts_with(kStagingPrefix) || name == area.staging_name) return;
    if (remove_leftover(*area.state, name)) ++removed_leftovers_;
  });
}

bool StagingArea::remove_leftover(const io::FileHandle& state, const std::string& name) {
  auto staging = files_.open_directory(state, name);
  if (!staging.ok()) return false;
  auto locked = files_.try_lock(*staging);
  if (!locked.ok() || !*locked) {
    mark("staging_of_a_living_run");
    return false;
  }
  mark("staging_leftover");
  if (!remove_files(files_, *staging).ok()) return false;
  // Still under its lock, so that its maker, if it lives after all, sees that it is gone.
  return files_.remove_directory(state, name).ok();
}

Status StagingArea::clean() {
  const std::lock_guard lock(mutex_);
  Status first;
  const auto keep = [&first](Status status) {
    if (first.ok()) first = std::move(status);
  };
  for (const auto& [mount, area] : areas_) {
    keep(remove_files(files_, *area.staging));
    keep(files_.remove_directory(*area.state, area.staging_name));
    Status removed = files_.remove_directory(*area.parent, kStateDirectoryName);
    // Not empty: another run lives, or other state is kept there. POSIX allows EEXIST for it.
    const int reason = removed.system_errno();
    if (reason != ENOTEMPTY && reason != EEXIST && reason != ENOENT) keep(std::move(removed));
  }
  areas_.clear();
  return first;
}

}  // namespace fgsync::storage
