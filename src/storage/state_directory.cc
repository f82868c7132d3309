#include "storage/state_directory.h"

#include <cerrno>
#include <utility>

#include "base/mark.h"
#include "storage/tree_walker.h"

namespace fgsync::storage {
namespace {

constexpr int kAttemptsMax = 100;

}  // namespace

Result<io::FileHandle> open_state_directory(io::FileSystem& files, const io::FileHandle& parent) {
  const std::string name = kStateDirectoryName;
  auto state = files.open_directory(parent, name);
  if (!state.ok()) return state.status().with_context(name);
  return state;
}

Result<io::FileHandle> make_state_directory(io::FileSystem& files, const io::FileHandle& parent) {
  const std::string name = kStateDirectoryName;
  const Status made = files.make_directory(parent, name, kStateMode);
  if (!made.ok() && made.system_errno() != EEXIST) return made.with_context(name);
  auto state = open_state_directory(files, parent);
  if (!state.ok()) return state;
  auto status = files.stat(*state);
  if (!status.ok()) return status.status().with_context(name);
  if ((status->mode & 077u) != 0) {
    FGSYNC_RETURN_IF_ERROR(files.set_mode(*state, kStateMode).with_context(name));
  }
  return state;
}

Status remove_state_directory(io::FileSystem& files, const io::FileHandle& parent) {
  Status removed = files.remove_directory(parent, kStateDirectoryName);
  // POSIX allows EEXIST for a directory that is not empty.
  const int reason = removed.system_errno();
  const bool fine = reason == ENOTEMPTY || reason == EEXIST || reason == ENOENT;
  return fine ? Status() : removed;
}

Result<bool> is_named(io::FileSystem& files, const io::FileHandle& base, const std::string& name,
                      const io::FileHandle& open) {
  auto named = files.stat_at(base, name);
  if (!named.ok()) return named.status();
  auto held = files.stat(open);
  if (!held.ok()) return held.status();
  return named->device == held->device && named->inode == held->inode;
}

// Who held the lock may have removed the directory at this very moment: before it is open here
// (ENOENT), or after it; then the lock is on nothing that anybody else will find.
Result<bool> StateLock::try_take(io::FileSystem& files, const io::FileHandle& root) {
  Result<bool> taken = false;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    if (attempt > 0) mark("state_lock_lost_race");
    auto state = make_state_directory(files, root);
    taken = state.ok() ? try_take_open(files, root, std::move(*state)) : state.status();
    if (taken.ok() || taken.status().system_errno() != ENOENT) return taken;
  }
  return taken;
}

Result<bool> StateLock::try_take_present(io::FileSystem& files, const io::FileHandle& root) {
  auto state = open_state_directory(files, root);
  if (!state.ok()) return state.status();
  return try_take_open(files, root, std::move(*state));
}

Result<bool> StateLock::try_take_open(io::FileSystem& files, const io::FileHandle& root,
                                      io::FileHandle state) {
  auto locked = files.try_lock(state);
  if (!locked.ok()) return locked.status();
  if (!*locked) {
    holder_ = files.lock_holder(state);
    return false;
  }
  auto named = is_named(files, root, kStateDirectoryName, state);
  if (!named.ok()) return named.status();
  if (!*named) return Status::from_errno(ENOENT, "locking").with_context(kStateDirectoryName);
  state_ = std::move(state);
  return true;
}

}  // namespace fgsync::storage
