#include "storage/tree_carrier.h"

#include <cerrno>
#include <utility>

#include "base/mark.h"
#include "storage/each_name.h"
#include "storage/tree_walker.h"

namespace fgsync::storage {
namespace {

constexpr std::size_t kOpenDirectoriesMax = 8;
constexpr std::uint32_t kUnfinishedMode = 0700;

Metadata metadata_of(const io::FileStatus& status) {
  return {.mode = status.mode, .uid = status.uid, .gid = status.gid, .mtime = status.mtime};
}

// A file with too many links, somebody else's (fs.protected_hardlinks), a file system without
// links.
bool refuses_links(int reason) {
  return reason == EMLINK || reason == EPERM || reason == EACCES || reason == EOPNOTSUPP ||
         reason == ENOSYS;
}

}  // namespace

TreeCarrier::TreeCarrier(io::FileSystem& files, io::FileHandle old_root, io::FileHandle new_root,
                         AsidePlace aside, TreeStep step)
    : files_(files),
      old_(files, std::move(old_root), kOpenDirectoriesMax),
      new_(files, std::move(new_root), kOpenDirectoriesMax),
      aside_(std::move(aside)),
      step_(std::move(step)) {}

Status TreeCarrier::visit_names(std::uint64_t directory, bool in_new, Visit visit) {
  auto handle = (in_new ? new_ : old_).open(directory);
  if (!handle.ok()) return handle.status();
  return for_each_name(files_, **handle, [&](const std::string& name) {
    if (directory == 0 && name == kStateDirectoryName) return Status();
    FGSYNC_RETURN_IF_ERROR(step_());
    Status visited = (this->*visit)(directory, name);
    return visited.ok() ? visited : visited.with_context(old_.path_of(directory, name));
  });
}

std::uint64_t TreeCarrier::enter(std::uint64_t parent, const std::string& name) {
  const std::uint64_t id = next_id_++;
  old_.add(id, parent, name);
  new_.add(id, parent, name);
  return id;
}

// ---- Carrying

Status TreeCarrier::carry() {
  auto root = old_.open(0);
  if (!root.ok()) return root.status();
  auto status = files_.stat(**root);
  if (!status.ok()) return status.status();
  mount_ = status->mount;
  carried_.push_back({0, metadata_of(*status)});
  FGSYNC_RETURN_IF_ERROR(carry_below(0));
  return finish_directories();
}

// What is in the directories from that one on, and in those that are found meanwhile.
Status TreeCarrier::carry_below(std::size_t first) {
  for (std::size_t i = first; i < carried_.size(); ++i) {
    FGSYNC_RETURN_IF_ERROR(visit_names(carried_[i].id, /*in_new=*/false, &TreeCarrier::carry_name));
  }
  return Status();
}

Status TreeCarrier::carry_name(std::uint64_t directory, const std::string& name) {
  auto from = old_.open(directory);
  if (!from.ok()) return from.status();
  auto status = files_.stat_at(**from, name);
  if (status.status().code() == ErrorCode::kNotFound) return Status();  // it has gone meanwhile
  if (!status.ok()) return status.status();
  if (status->mount != mount_) {
    return Status(ErrorCode::kUnsupported,
                  "publishing the tree at once: what is mounted inside the target cannot be "
                  "switched with it; without --publish=tree it can be replicated into");
  }
  if (status->type == io::FileType::kDirectory) return carry_directory(directory, name, *status);
  auto to = new_.open(directory);
  if (!to.ok()) return to.status();
  Status carried = status->type == io::FileType::kSymlink
                       ? carry_symlink(**from, **to, name, *status)
                       : carry_file(**from, **to, name, *status);
  const bool is_there = carried.system_errno() == EEXIST;
  const bool has_gone = carried.code() == ErrorCode::kNotFound;
  return is_there || has_gone ? Status() : carried;
}

Status TreeCarrier::carry_directory(std::uint64_t parent, const std::string& name,
                                    const io::FileStatus& status) {
  auto to = new_.open(parent);
  if (!to.ok()) return to.status();
  Status made = files_.make_directory(**to, name, kUnfinishedMode);
  if (made.system_errno() == EEXIST) {
    auto present = files_.stat_at(**to, name);
    if (!present.ok()) return present.status();
    // An earlier run has put something else there.
    if (present->type != io::FileType::kDirectory) return Status();
    mark("carry_directory_again");
    made = files_.set_mode_at(**to, name, kUnfinishedMode);
  }
  FGSYNC_RETURN_IF_ERROR(made);
  carried_.push_back({enter(parent, name), metadata_of(status)});
  return Status();
}

Status TreeCarrier::carry_symlink(const io::FileHandle& from, const io::FileHandle& to,
                                  const std::string& name, const io::FileStatus& status) {
  auto target = files_.read_link(from, name);
  if (!target.ok()) return target.status();
  FGSYNC_RETURN_IF_ERROR(files_.make_symlink(to, name, *target));
  return apply_symlink_metadata(files_, to, name, metadata_of(status));
}

Status TreeCarrier::carry_file(const io::FileHandle& from, const io::FileHandle& to,
                               const std::string& name, const io::FileStatus& status) {
  Status linked = files_.link(from, name, to, name);
  if (linked.ok() || !refuses_links(linked.system_errno())) return linked;
  auto present = files_.stat_at(to, name);
  if (present.ok()) return Status();
  if (status.type == io::FileType::kRegular) {
    mark("carry_copies");
    return copy_file(files_, from, to, name, metadata_of(status), aside_);
  }
  const bool anybody_makes_it =
      status.type == io::FileType::kFifo || status.type == io::FileType::kSocket;
  return anybody_makes_it ? make_anew(to, name, status) : linked;
}

Status TreeCarrier::make_anew(const io::FileHandle& to, const std::string& name,
                              const io::FileStatus& status) {
  FGSYNC_RETURN_IF_ERROR(files_.make_special(to, name, status.type, kUnfinishedMode));
  auto made = files_.stat_at(to, name);
  if (!made.ok()) return made.status();
  return update_metadata_at(files_, to, name, *made, metadata_of(status), /*with_mtime=*/true)
      .status();
}

// Deepest first: a mode may forbid to enter.
Status TreeCarrier::finish_directories() {
  for (; !carried_.empty(); carried_.pop_back()) {
    FGSYNC_RETURN_IF_ERROR(step_());
    auto directory = new_.open(carried_.back().id);
    if (!directory.ok()) return directory.status();
    FGSYNC_RETURN_IF_ERROR(apply_metadata(files_, **directory, carried_.back().metadata));
  }
  return Status();
}

// ---- Restoring

Status TreeCarrier::restore(const IsWanted& is_wanted) {
  is_wanted_ = is_wanted;
  auto root = old_.open(0);
  if (!root.ok()) return root.status();
  auto status = files_.stat(**root);
  if (!status.ok()) return status.status();
  mount_ = status->mount;
  restorable_ = {0};
  while (!restorable_.empty()) {
    const std::uint64_t directory = restorable_.back();
    restorable_.pop_back();
    FGSYNC_RETURN_IF_ERROR(visit_names(directory, /*in_new=*/true, &TreeCarrier::restore_name));
  }
  return finish_directories();
}

Status TreeCarrier::restore_name(std::uint64_t directory, const std::string& name) {
  auto at = new_.open(directory);
  if (!at.ok()) return at.status();
  auto now = files_.stat_at(**at, name);
  if (!now.ok()) return now.status();
  const bool is_directory = now->type == io::FileType::kDirectory;
  if (is_wanted_(old_.path_of(directory, name))) {
    if (is_directory) restorable_.push_back(enter(directory, name));
    return Status();
  }
  auto same = is_same(directory, name, *now);
  if (!same.ok()) return same.status();
  if (*same && is_directory) {
    auto from = old_.open(directory);
    if (!from.ok()) return from.status();
    auto status = files_.stat_at(**from, name);
    if (!status.ok()) return status.status();
    // Something in it may have to go.
    FGSYNC_RETURN_IF_ERROR(files_.set_mode_at(**at, name, kUnfinishedMode));
    restorable_.push_back(enter(directory, name));
    carried_.push_back({restorable_.back(), metadata_of(*status)});
  }
  if (*same) return Status();
  FGSYNC_RETURN_IF_ERROR(remove_tree(files_, **at, name, step_));
  if (!old_.open(directory).ok()) return Status();
  const std::size_t first = carried_.size();
  FGSYNC_RETURN_IF_ERROR(carry_name(directory, name));
  return carry_below(first);
}

// Whether the old tree has the same under that name.
Result<bool> TreeCarrier::is_same(std::uint64_t directory, const std::string& name,
                                  const io::FileStatus& now) {
  auto from = old_.open(directory);
  if (!from.ok()) return false;
  auto then = files_.stat_at(**from, name);
  if (then.status().code() == ErrorCode::kNotFound) return false;
  if (!then.ok()) return then.status();
  if (then->type != now.type) return false;
  if (now.type == io::FileType::kDirectory || then->inode == now.inode) return true;
  if (now.type == io::FileType::kRegular) {
    return then->size == now.size && then->mtime == now.mtime && then->mode == now.mode &&
           then->uid == now.uid && then->gid == now.gid;
  }
  if (now.type != io::FileType::kSymlink) return false;
  auto at = new_.open(directory);
  if (!at.ok()) return at.status();
  auto text = files_.read_link(**at, name);
  auto old_text = files_.read_link(**from, name);
  return text.ok() && old_text.ok() && *text == *old_text && then->mtime == now.mtime;
}

}  // namespace fgsync::storage
