#include "transfer/tree_switch.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/mark.h"
#include "receipt/receipt_index.h"
#include "transfer/changes.h"
#include "transfer/link_switch.h"
#include "transfer/source_mapping.h"
#include "wire/byte_writer.h"

namespace fgsync::transfer {
namespace {

// How often a waiting run looks whether the other one has ended, and itself been cancelled.
constexpr std::chrono::milliseconds kLook{100};
constexpr std::uint32_t kCarriedRootMode = 0700;  // it gets the old one's
constexpr std::uint32_t kNewRootMode = 0777;      // as any directory that is made; umask(2)
// In the workshop, where there is no old tree: an empty one.
constexpr const char* kNothingName = "nothing";

bool is_missing(const Status& status) { return status.code() == ErrorCode::kNotFound; }

// Of a rename: something, or something in it, stands where the directory was to go.
bool stands_there(const Status& renamed) {
  const int reason = renamed.system_errno();
  return reason == ENOTEMPTY || reason == EEXIST || reason == EISDIR || reason == ENOTDIR;
}

// A tree that another run has left is gone on with only where the same is left alone: to --existing
// all that stands in it would be there already, and what --max-size leaves alone would appear with
// the rest.
wire::Checksum tree_identity(const wire::Checksum& transfer, const SessionParameters& parameters) {
  if (!may_pass_over(parameters)) return transfer;
  const Selection& selection = parameters.selection;
  const Changes& changes = parameters.changes;
  wire::ByteWriter writer;
  writer.string(transfer.hex());
  writer.u64(selection.bytes_min);
  writer.u64(selection.bytes_max);
  writer.boolean(selection.safe_links);
  writer.boolean(changes.update);
  writer.boolean(changes.existing_only);
  writer.boolean(changes.new_only);
  return wire::checksum_of(writer.written());
}

}  // namespace

TreeSwitch::TreeSwitch(Session& session, std::string path, const wire::Checksum& transfer)
    : session_(session),
      files_(session.files()),
      path_(std::move(path)),
      transfer_(tree_identity(transfer, session.parameters)),
      durable_(session.parameters.durability != Durability::kNone),
      step_([&session] {
        session.add_progress();
        return session.status();
      }),
      workshop_(files_, durable_, [&session] {
        session.add_progress();
        return Status();
      }) {}

// ---- Before

io::Task<Result<io::FileHandle>> TreeSwitch::prepare() {
  io::Io& io = session_.control_io();
  for (bool told = false;;) {
    Result<bool> locked = false;
    co_await io::run_blocking(io, [&] { locked = try_lock(); });
    if (!locked.ok()) co_return locked.status();
    if (*locked) break;
    if (session_.parameters.fail_if_locked) {
      mark("tree_locked");
      co_return Status(ErrorCode::kLocked, path_ + ": another run holds the lock" + holder_);
    }
    if (!std::exchange(told, true)) {
      mark("tree_lock_waits");
      session_.tell("waiting for another run into " + path_ + holder_);
    }
    session_.add_step();
    (void)co_await io::sleep_until(io, session_.environment().now() + kLook);
    if (session_.failed()) co_return session_.status();
  }
  Result<io::FileHandle> tree = io::FileHandle();
  co_await io::run_blocking(io, [&] {
    Status filled = fill();
    tree = filled.ok() ? files_.open_directory(workshop_.directory(), Workshop::kTreeName)
                       : Result<io::FileHandle>(filled);
  });
  if (tree.ok()) co_return tree;
  // What has just been begun is nothing to go on with.
  co_await io::run_blocking(io, [&] { leave(goes_on_); });
  co_return tree.status().with_context(target_.path);
}

// The workshop first, then what an ordinary run into the old tree holds.
Result<bool> TreeSwitch::try_lock() {
  auto target = find_tree_target(files_, path_);
  if (!target.ok()) return target.status();
  target_ = std::move(*target);
  auto locked = workshop_.try_open(target_.parent, target_.workshop_name(),
                                   session_.environment().wall_clock());
  if (locked.status().code() == ErrorCode::kUnsupported) {
    return locked.status().with_context(target_.path);
  }
  if (!locked.ok()) {
    return Status(ErrorCode::kUnusable, parent_of(target_.path) + "/" + locked.status().message(),
                  locked.status().system_errno());
  }
  holder_ = workshop_.holder();
  if (!*locked) return false;
  locked = lock_old_tree();
  if (!locked.ok() || !*locked) {
    old_lock_.release();
    old_.reset();
    workshop_.close(target_.parent);
  }
  return locked;
}

// False also if the names don't stand any more for what they stood for before the locks were held.
Result<bool> TreeSwitch::lock_old_tree() {
  if (target_.kind == TreeTarget::Kind::kMissing) {
    return is_missing(files_.stat_at(target_.parent, target_.name).status());
  }
  auto old = files_.open_directory(target_.parent, target_.name);
  if (is_missing(old.status())) return false;
  if (!old.ok()) return old.status().with_context(target_.path);
  old_ = std::move(*old);
  auto status = files_.stat(old_);
  if (!status.ok()) return status.status();
  old_mtime_ = status->mtime;
  auto taken = old_lock_.try_take(files_, old_);
  const int reason = taken.status().system_errno();
  // Where nobody like us can make a state directory, nobody like us stages anything.
  const bool refused = reason == EACCES || reason == EPERM || reason == EROFS;
  if (refused) mark("tree_old_lock_refused");
  if (!taken.ok() && !refused) {
    return Status(ErrorCode::kUnusable, target_.path + ": " + taken.status().message(), reason);
  }
  holder_ = old_lock_.holder();
  if (taken.ok() && !*taken) return false;
  // Its state is not what readers of the old tree see a change of.
  (void)files_.set_mtime(old_, old_mtime_);
  auto named = storage::is_named(files_, target_.parent, target_.name, old_);
  if (is_missing(named.status())) return false;
  if (!named.ok() || !*named || target_.kind != TreeTarget::Kind::kSymlink) return named;
  auto text = files_.read_link(target_.link_parent, target_.link_name);
  return text.ok() && *text == target_.link_text;
}

Status TreeSwitch::fill() {
  if (target_.kind == TreeTarget::Kind::kDirectory) {
    FGSYNC_RETURN_IF_ERROR(workshop_.try_exchange());
  }
  if (target_.kind == TreeTarget::Kind::kSymlink) {
    FGSYNC_RETURN_IF_ERROR(LinkSwitch(session_, target_, workshop_.directory()).recover());
  }
  WorkshopRecord wanted;
  wanted.transfer = transfer_;
  if (old_) {
    auto status = files_.stat(old_);
    if (!status.ok()) return status.status();
    wanted.old_inode = status->inode;
    FGSYNC_RETURN_IF_ERROR(describe_receipt(files_, old_, wanted));
  }
  auto found = workshop_.base();
  if (found.ok()) wanted.new_inode = found->new_inode;
  goes_on_ = session_.parameters.resume && found.ok() && *found == wanted;
  if (goes_on_) {
    mark("tree_goes_on");
  } else {
    auto cleared = workshop_.clear(target_.parent);
    if (!cleared.ok()) return cleared.status();
    if (*cleared) {
      mark("tree_leftover");
      session_.errors().note("removed what an earlier run with --publish=tree has left in " +
                             parent_of(target_.path) + "/" + target_.workshop_name());
    }
    FGSYNC_RETURN_IF_ERROR(workshop_.begin(wanted, old_ ? kCarriedRootMode : kNewRootMode, old_));
  }
  if (!old_) return Status();
  auto carrier = make_carrier();
  return carrier.ok() ? (*carrier)->carry() : carrier.status();
}

Result<std::unique_ptr<storage::TreeCarrier>> TreeSwitch::make_carrier() {
  const io::FileHandle& workshop = workshop_.directory();
  if (!old_) {
    const Status made = files_.make_directory(workshop, kNothingName, kCarriedRootMode);
    if (!made.ok() && made.system_errno() != EEXIST) return made;
  }
  auto old = old_ ? files_.open_directory(target_.parent, target_.name)
                  : files_.open_directory(workshop, kNothingName);
  if (!old.ok()) return old.status();
  auto tree = files_.open_directory(workshop, Workshop::kTreeName);
  if (!tree.ok()) return tree.status();
  return std::make_unique<storage::TreeCarrier>(
      files_, std::move(*old), std::move(*tree),
      storage::AsidePlace{workshop, Workshop::kCopyName, durable_, session_.parameters.read_back},
      step_);
}

// ---- Meanwhile

Result<io::FileStatus> TreeSwitch::old_root() {
  if (!old_) return Status(ErrorCode::kNotFound, "nothing stands there");
  Result<io::FileStatus> status = files_.stat(old_);
  if (status.ok()) status->mtime = old_mtime_;  // whatever became of its state directory
  return status;
}

void TreeSwitch::announce(const std::string& path) {
  if (goes_on_) announced_.push_back(receipt::path_hash(path));
}

Result<bool> TreeSwitch::makes_way(const std::string& path, const io::FileHandle& directory,
                                   const std::string& name) {
  if (!goes_on_ || has_old_directory(path)) return false;
  FGSYNC_RETURN_IF_ERROR(storage::remove_tree(files_, directory, name, step_));
  return true;
}

bool TreeSwitch::has_old_directory(const std::string& path) {
  if (!old_) return false;
  auto at = files_.open_directory(target_.parent, target_.name);
  for (std::size_t start = 0; at.ok() && start < path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    at = files_.open_directory(*at, path.substr(start, end - start));
    start = end + 1;
  }
  return at.ok() || at.status().code() == ErrorCode::kPermissionDenied;
}

Status TreeSwitch::restore() {
  if (!goes_on_) return Status();
  std::ranges::sort(announced_);
  auto carrier = make_carrier();
  if (!carrier.ok()) return carrier.status();
  return (*carrier)->restore([this](const std::string& path) {
    return std::ranges::binary_search(announced_, receipt::path_hash(path));
  });
}

// ---- After

// What has its name is what was carried: anything else would go with the old tree.
Status TreeSwitch::check_old_tree() {
  auto named = storage::is_named(files_, target_.parent, target_.name, old_);
  if (named.ok() && *named) return Status();
  if (!named.ok() && !is_missing(named.status())) return named.status();
  return Status(ErrorCode::kUnusable,
                "publishing the tree: something else has been put in its place meanwhile");
}

Status TreeSwitch::publish() {
  const io::FileHandle& workshop = workshop_.directory();
  Status switched;
  switch (target_.kind) {
    case TreeTarget::Kind::kDirectory:
      switched = check_old_tree();
      if (!switched.ok()) return switched.with_context(path_);
      switched = files_.exchange(workshop, Workshop::kTreeName, target_.parent, target_.name);
      break;
    case TreeTarget::Kind::kMissing:
      switched = files_.rename(workshop, Workshop::kTreeName, target_.parent, target_.name);
      if (stands_there(switched)) {
        switched = Status(ErrorCode::kLocked, "another run has made it meanwhile");
      }
      break;
    case TreeTarget::Kind::kSymlink:
      switched = LinkSwitch(session_, target_, workshop).run();
      break;
  }
  // The name that readers use first; a workshop that still has it is recognised.
  if (switched.ok() && durable_ && target_.kind != TreeTarget::Kind::kSymlink) {
    switched = files_.sync(target_.parent);
    if (switched.ok()) switched = files_.sync(workshop);
  }
  if (switched.ok()) return switched;
  // Which of the two a power cut would leave is open: so both stay.
  workshop_.close(target_.parent);
  return switched.with_context("publishing the tree").with_context(path_);
}

void TreeSwitch::remove_old_tree() {
  Status removed;
  if (target_.kind == TreeTarget::Kind::kSymlink) {
    tidy_old_tree();
    removed = LinkSwitch(session_, target_, workshop_.directory()).remove_previous(target_.name);
  }
  if (removed.ok()) removed = workshop_.remove(target_.parent);
  old_lock_.release();
  if (!removed.ok()) session_.errors().note("removing the old tree: " + removed.message());
}

void TreeSwitch::leave(bool keep) {
  Status removed;
  if (keep || !workshop_.is_open()) {
    workshop_.close(target_.parent);
  } else {
    removed = workshop_.remove(target_.parent);
  }
  if (!removed.ok()) session_.errors().note("removing the new tree: " + removed.message());
  tidy_old_tree();
  old_lock_.release();
}

// The lock's own directory, if nothing else is in it.
void TreeSwitch::tidy_old_tree() {
  if (!old_lock_.is_held()) return;
  (void)storage::remove_state_directory(files_, old_);
  (void)files_.set_mtime(old_, old_mtime_);
}

}  // namespace fgsync::transfer
