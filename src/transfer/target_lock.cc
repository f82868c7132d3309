#include "transfer/target_lock.h"

#include <cerrno>

#include "base/mark.h"
#include "storage/tree_walker.h"

namespace fgsync::transfer {
namespace {

// How often a waiting run looks whether the other one has ended, and itself been cancelled.
constexpr std::chrono::milliseconds kLook{100};

}  // namespace

io::Task<bool> TargetLock::take(Missing missing) {
  io::Io& io = session_.control_io();
  for (bool told = false; !taken_;) {
    Result<bool> taken = false;
    co_await io::run_blocking(io, [&] { taken = try_take(missing); });
    if (missing == Missing::kLeave && taken.status().code() == ErrorCode::kNotFound) co_return true;
    if (!taken.ok()) {
      session_.fail(taken.status().with_context(root_display_));
      co_return false;
    }
    taken_ = *taken;
    if (taken_) break;
    if (session_.parameters.fail_if_locked) {
      mark("target_locked");
      session_.fail(Status(ErrorCode::kLocked, root_display_ + "/" + storage::kStateDirectoryName +
                                                   ": another run holds the lock" +
                                                   lock_.holder()));
      co_return false;
    }
    if (!told) {
      told = true;
      mark("target_lock_waits");
      session_.tell("waiting for another run into " + root_display_ + lock_.holder());
    }
    session_.add_step();
    (void)co_await io::sleep_until(io, session_.environment().now() + kLook);
    if (session_.failed()) co_return false;
  }
  co_return true;
}

Result<bool> TargetLock::look_at_root() {
  if (named_by_.empty()) return true;
  io::FileSystem& files = session_.files();
  auto root = directories_.open(0);
  if (!root.ok()) return root.status();
  auto held = files.stat(**root);
  if (!held.ok()) return held.status();
  auto named = files.stat_path(named_by_, /*follow=*/true);
  if (!named.ok()) return named.status();
  if (named->inode == held->inode && named->device == held->device) return true;
  mark("target_was_switched");
  if (!directories_.is_empty()) {
    return Status(ErrorCode::kLocked, "another run has switched it meanwhile");
  }
  auto opened = files.open_path(named_by_);
  if (!opened.ok()) return opened.status();
  directories_.set_root(std::move(*opened));
  return false;
}

Result<bool> TargetLock::try_take(Missing missing) {
  auto same = look_at_root();
  if (!same.ok() || !*same) return same;
  auto root = directories_.open(0);
  if (!root.ok()) return root.status();
  io::FileSystem& files = session_.files();
  Result<bool> taken = missing == Missing::kMake ? lock_.try_take(files, **root)
                                                 : lock_.try_take_present(files, **root);
  // A root that has been switched and removed since we looked takes no lock any more.
  const bool root_is_gone =
      missing == Missing::kMake && taken.status().code() == ErrorCode::kNotFound;
  if (root_is_gone || (taken.ok() && *taken)) {
    same = look_at_root();
    if (!same.ok() || !*same) lock_.release();
    if (!same.ok() || !*same) return same;
  }
  if (taken.ok() || taken.status().code() == ErrorCode::kNoSpace) return taken;
  if (taken.status().code() == ErrorCode::kNotFound) return taken;
  const int reason = taken.status().system_errno();
  if (reason == EACCES || reason == EPERM || reason == EROFS) {
    // Nobody like us can stage a file there. What can be done without will be done, the rest fails
    // by itself.
    mark("target_lock_refused");
    return true;
  }
  return Status(ErrorCode::kUnusable, taken.status().message(), reason);
}

void TargetLock::tidy() {
  if (!lock_.is_held()) return;
  auto root = directories_.open(0);
  Status removed =
      root.ok() ? storage::remove_state_directory(session_.files(), **root) : root.status();
  if (!removed.ok()) session_.errors().note("cleaning the state directory: " + removed.message());
}

}  // namespace fgsync::transfer
