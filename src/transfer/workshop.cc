#include "transfer/workshop.h"

#include <cerrno>
#include <utility>

#include "base/mark.h"
#include "receipt/receipt_reader.h"
#include "storage/copy_file.h"
#include "storage/each_name.h"
#include "storage/state_directory.h"

namespace fgsync::transfer {
namespace {

constexpr std::uint32_t kWorkshopMode = 0700;

bool is_missing(const Status& status) { return status.code() == ErrorCode::kNotFound; }

Result<io::FileStatus> stat_receipt(io::FileSystem& files, const io::FileHandle& old_root,
                                    io::FileHandle& state) {
  auto opened = storage::open_state_directory(files, old_root);
  if (!opened.ok()) return opened.status();
  state = std::move(*opened);
  auto status = files.stat_at(state, receipt::kReceiptName);
  if (status.ok() && status->type != io::FileType::kRegular) {
    return Status(ErrorCode::kNotFound, "no receipt");
  }
  return status;
}

}  // namespace

Status describe_receipt(io::FileSystem& files, const io::FileHandle& old_root,
                        WorkshopRecord& base) {
  io::FileHandle state;
  auto status = stat_receipt(files, old_root, state);
  if (is_missing(status.status())) return Status();
  if (!status.ok()) return status.status();
  base.receipt_inode = status->inode;
  base.receipt_size = status->size;
  base.receipt_mtime = status->mtime;
  return Status();
}

Result<bool> Workshop::try_open(const io::FileHandle& parent, const std::string& name,
                                std::chrono::system_clock::time_point now) {
  const Status made = files_.make_directory(parent, name, kWorkshopMode);
  if (!made.ok() && made.system_errno() != EEXIST) return made.with_context(name);
  auto opened = try_open_present(parent, name);
  if (is_missing(opened.status())) return false;
  if (!opened.ok() || !*opened) return opened;
  Status settled = files_.set_mode(directory_, kWorkshopMode);
  const auto since_epoch = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch());
  if (settled.ok()) settled = files_.set_mtime(directory_, {since_epoch.count(), 0});
  if (!settled.ok()) {
    close(parent);
    return settled.with_context(name);
  }
  return true;
}

Result<bool> Workshop::try_open_present(const io::FileHandle& parent, const std::string& name) {
  name_ = name;
  auto directory = files_.open_directory(parent, name_);
  if (!directory.ok()) return directory.status().with_context(name_);
  auto locked = files_.try_lock(*directory);
  if (locked.ok() && !*locked) holder_ = files_.lock_holder(*directory);
  if (!locked.ok() || !*locked) return locked;
  auto named = storage::is_named(files_, parent, name_, *directory);
  if (!named.ok() || !*named) return named;
  auto kept_apart = has_locks(parent);
  if (!kept_apart.ok()) return kept_apart.status();
  if (!*kept_apart) {
    mark("workshop_without_locks");
    (void)files_.remove_directory(parent, name_);
    return Status(ErrorCode::kUnsupported,
                  "publishing the tree at once: its file system has no locks, so two runs could "
                  "not be kept apart");
  }
  directory_ = std::move(*directory);
  return true;
}

// A lock that can be taken once more is none.
Result<bool> Workshop::has_locks(const io::FileHandle& parent) {
  auto again = files_.open_directory(parent, name_);
  if (is_missing(again.status())) return true;  // that is looked at next
  if (!again.ok()) return again.status();
  auto taken = files_.try_lock(*again);
  if (!taken.ok()) return taken.status();
  return !*taken;
}

Result<WorkshopRecord> Workshop::base() const {
  auto base = load_base(files_, directory_);
  if (!base.ok()) return base;
  auto tree = files_.stat_at(directory_, kTreeName);
  if (!tree.ok()) return tree.status();
  // After the switch the old tree is there.
  if (tree->type == io::FileType::kDirectory && tree->inode == base->new_inode) return base;
  mark("workshop_holds_the_old_tree");
  return Status(ErrorCode::kNotFound, "it is not the new tree");
}

// Where it is not possible that must be known before anything is sent.
Status Workshop::try_exchange() {
  constexpr const char* kNames[] = {"one", "other"};
  for (const char* name : kNames) {
    Status made = files_.make_directory(directory_, name, kWorkshopMode);
    if (!made.ok() && made.system_errno() != EEXIST) return made;
  }
  Status exchanged = files_.exchange(directory_, kNames[0], directory_, kNames[1]);
  for (const char* name : kNames) {
    FGSYNC_RETURN_IF_ERROR(files_.remove_directory(directory_, name));
  }
  const int reason = exchanged.system_errno();
  if (reason != EINVAL && reason != ENOSYS && reason != EOPNOTSUPP) return exchanged;
  mark("exchange_refused");
  return Status(ErrorCode::kUnsupported,
                "publishing the tree at once: its file system cannot exchange two names "
                "(RENAME_EXCHANGE); a target that does not exist yet, or a symlink to a directory, "
                "can be switched there");
}

Result<bool> Workshop::clear(const io::FileHandle& parent) {
  bool anything = false;
  // A switch that a power cut takes back makes the target of what is here.
  FGSYNC_RETURN_IF_ERROR(files_.sync(parent));
  FGSYNC_RETURN_IF_ERROR(files_.sync(directory_));
  FGSYNC_RETURN_IF_ERROR(storage::for_each_name(files_, directory_, [&](const std::string& name) {
    anything = true;
    return storage::remove_tree(files_, directory_, name, step_);
  }));
  return anything;
}

Status Workshop::begin(WorkshopRecord base, std::uint32_t mode, const io::FileHandle& old_root) {
  FGSYNC_RETURN_IF_ERROR(files_.make_directory(directory_, kTreeName, mode));
  auto tree = files_.open_directory(directory_, kTreeName);
  if (!tree.ok()) return tree.status();
  auto status = files_.stat(*tree);
  if (!status.ok()) return status.status();
  if (old_root) FGSYNC_RETURN_IF_ERROR(copy_receipt(*tree, old_root));
  if (durable_) FGSYNC_RETURN_IF_ERROR(files_.sync(*tree));
  base.new_inode = status->inode;
  return store_base(files_, directory_, base, durable_);
}

// Runs append to a receipt, so this is the one file that cannot be linked.
Status Workshop::copy_receipt(const io::FileHandle& tree, const io::FileHandle& old_root) {
  io::FileHandle old_state;
  auto status = stat_receipt(files_, old_root, old_state);
  if (is_missing(status.status())) return Status();
  if (!status.ok()) return status.status();
  auto state = storage::make_state_directory(files_, tree);
  if (!state.ok()) return state.status();
  const storage::Metadata metadata{
      .mode = status->mode, .uid = status->uid, .gid = status->gid, .mtime = status->mtime};
  FGSYNC_RETURN_IF_ERROR(storage::copy_file(files_, old_state, *state, receipt::kReceiptName,
                                            metadata, {directory_, kCopyName, durable_}));
  return durable_ ? files_.sync(*state) : Status();
}

Status Workshop::remove(const io::FileHandle& parent) {
  auto cleared = clear(parent);
  Status removed = cleared.ok() ? files_.remove_directory(parent, name_) : cleared.status();
  directory_.reset();
  return removed;
}

void Workshop::close(const io::FileHandle& parent) {
  if (!directory_) return;
  (void)files_.remove_directory(parent, name_);
  directory_.reset();
}

}  // namespace fgsync::transfer
