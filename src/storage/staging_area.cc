#include "storage/staging_area.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

#include "base/mark.h"
#include "storage/each_name.h"
#include "storage/state_directory.h"

namespace fgsync::storage {
namespace {

constexpr std::string_view kStagingPrefix = "staging-";
// Each lost race means that another run started or ended at that very moment.
constexpr int kAttemptsMax = 100;

DirectoryReference share(io::FileHandle handle) {
  return std::make_shared<const io::FileHandle>(std::move(handle));
}

bool is_lost_race(const Status& status) {
  const int reason = status.system_errno();
  return reason == ENOENT || reason == EEXIST || reason == EWOULDBLOCK;
}

// Removes the files in a staging directory; it holds nothing else, and what else is found there
// stays.
Status remove_files(io::FileSystem& files, const io::FileHandle& staging) {
  Status first;
  const Status listed = for_each_name(files, staging, [&](const std::string& name) {
    Status removed = files.unlink(staging, name);
    // Put there by somebody else. An empty one is no reason to keep the rest.
    if (removed.system_errno() == EISDIR) removed = files.remove_directory(staging, name);
    const bool failed = !removed.ok() && removed.system_errno() != ENOENT;
    if (failed && first.ok()) first = std::move(removed);
    return Status();
  });
  return first.ok() ? listed : first;
}

}  // namespace

StagingArea::StagingArea(io::FileSystem& files, std::string session_name, JudgeLeftover judge)
    : files_(files), session_name_(std::move(session_name)), judge_(std::move(judge)) {}

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
      settle_leftovers(*area);
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
  auto state = make_state_directory(files_, *directory);
  if (!state.ok()) return state.status();
  FGSYNC_RETURN_IF_ERROR(files_.make_directory(*state, staging_name, kStateMode));
  auto staging = files_.open_directory(*state, staging_name);
  if (!staging.ok()) return staging.status();
  auto locked = files_.try_lock(*staging);
  if (!locked.ok()) return locked.status();
  // Until the lock was taken it looked like a leftover, and another run may have removed it as one.
  if (!*locked) return Status::from_errno(EWOULDBLOCK, "locking the staging directory");
  auto named = is_named(files_, *state, staging_name, *staging);
  if (!named.ok()) return named.status();
  if (!*named) return Status::from_errno(ENOENT, "locking the staging directory");
  return Area{directory, share(std::move(*state)), share(std::move(*staging)), staging_name, false};
}

void StagingArea::look_for_leftovers(std::uint64_t mount, const DirectoryReference& directory) {
  auto state = open_state_directory(files_, *directory);
  if (!state.ok()) return;
  bool any = false;
  (void)for_each_name(files_, *state, [&any](const std::string& name) {
    any = any || name.starts_with(kStagingPrefix);
    return Status();
  });
  if (any) (void)on_mount(mount, directory);
}

std::string StagingArea::next_name() {
  const std::lock_guard lock(mutex_);
  return std::to_string(next_number_++);
}

std::uint64_t StagingArea::removed_leftovers() const {
  const std::lock_guard lock(mutex_);
  return removed_leftovers_;
}

void StagingArea::skip_names_below(std::uint64_t number) {
  // Called by the judge, so under the lock.
  next_number_ = std::max(next_number_, number);
}

// Best effort: what can't be removed now stays for a later run, and is no reason to fail this one.
void StagingArea::settle_leftovers(Area& area) {
  // Our own directory is locked. If it can be locked once more, this file system has no locks.
  auto again = files_.open_directory(*area.state, area.staging_name);
  if (!again.ok()) return;
  auto unlocked = files_.try_lock(*again);
  if (!unlocked.ok() || *unlocked) {
    mark("staging_without_locks");
    return;
  }
  area.has_locks = true;
  const std::string own = area.staging_name;
  bool taken_over = false;
  (void)for_each_name(files_, *area.state, [&](const std::string& name) {
    if (name.starts_with(kStagingPrefix) && name != own) settle_leftover(area, name, taken_over);
    return Status();
  });
}

void StagingArea::settle_leftover(Area& area, const std::string& name, bool& taken_over) {
  auto staging = files_.open_directory(*area.state, name);
  if (!staging.ok()) return;
  auto locked = files_.try_lock(*staging);
  if (!locked.ok() || !*locked) {
    mark("staging_of_a_living_run");
    return;
  }
  auto named = is_named(files_, *area.state, name, *staging);
  if (!named.ok() || !*named) return;
  const DirectoryReference leftover = share(std::move(*staging));
  const Leftover verdict = judge_(leftover, /*may_take_over=*/!taken_over);
  if (verdict == Leftover::kKeep) {
    mark("staging_kept_for_another_run");
    return;
  }
  if (verdict == Leftover::kTakeOver) {
    mark("staging_taken_over");
    taken_over = true;
    return take_over(area, leftover, name);
  }
  mark("staging_leftover");
  if (!remove_files(files_, *leftover).ok()) return;
  // Still under its lock, so that its maker, if it lives after all, sees that it is gone.
  if (files_.remove_directory(*area.state, name).ok()) ++removed_leftovers_;
}

void StagingArea::take_over(Area& area, DirectoryReference staging, const std::string& name) {
  (void)for_each_name(files_, *staging, [&](const std::string& staged) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(staged.data(), staged.data() + staged.size(), number);
    const bool is_number = error == std::errc() && end == staged.data() + staged.size();
    if (is_number) next_number_ = std::max(next_number_, number + 1);
    return Status();
  });
  (void)files_.remove_directory(*area.state, area.staging_name);
  area.staging = std::move(staging);
  area.staging_name = name;
}

Status StagingArea::sync_names(const io::FileHandle& staging) {
  const std::lock_guard lock(mutex_);
  for (const auto& [mount, area] : areas_) {
    if (area.staging.get() != &staging) continue;
    FGSYNC_RETURN_IF_ERROR(files_.sync(*area.staging));
    FGSYNC_RETURN_IF_ERROR(files_.sync(*area.state));
    return files_.sync(*area.parent);
  }
  return Status();
}

Status StagingArea::clean(const std::set<const io::FileHandle*>& kept) {
  const std::lock_guard lock(mutex_);
  Status first;
  const auto keep = [&first](Status status) {
    if (first.ok()) first = std::move(status);
  };
  for (const auto& [mount, area] : areas_) {
    if (area.has_locks && kept.contains(area.staging.get())) continue;
    keep(remove_files(files_, *area.staging));
    keep(files_.remove_directory(*area.state, area.staging_name));
    // Whoever has locked it removes it.
    auto unused = files_.try_lock(*area.state);
    if (unused.ok() && *unused) keep(remove_state_directory(files_, *area.parent));
  }
  areas_.clear();
  return first;
}

}  // namespace fgsync::storage
