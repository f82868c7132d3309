#include "storage/remove_tree.h"

#include <cerrno>
#include <utility>
#include <vector>

#include "storage/directory_tree.h"
#include "storage/each_name.h"

namespace fgsync::storage {
namespace {

constexpr std::size_t kOpenDirectoriesMax = 8;
constexpr std::uint32_t kWritableMode = 0700;

struct Directory {
  std::uint64_t parent = 0;
  std::string name;
};

// A directory that its owner cannot write into cannot be emptied either.
Result<io::FileHandle> open_to_empty(io::FileSystem& files, const io::FileHandle& parent,
                                     const std::string& name) {
  auto status = files.stat_at(parent, name);
  if (!status.ok()) return status.status();
  const bool writable = (status->mode & kWritableMode) == kWritableMode;
  if (status->type == io::FileType::kDirectory && !writable) {
    FGSYNC_RETURN_IF_ERROR(files.set_mode_at(parent, name, kWritableMode));
  }
  return files.open_directory(parent, name);
}

Status mounted_here(const std::string& name) {
  return Status(ErrorCode::kUnusable, name + ": something is mounted there", EBUSY);
}

class TreeRemoval {
 public:
  TreeRemoval(io::FileSystem& files, io::FileHandle root, std::uint64_t mount, const TreeStep& step)
      : files_(files),
        mount_(mount),
        step_(step),
        tree_(files, std::move(root), kOpenDirectoriesMax) {
    directories_.emplace_back();  // the root is number 0
  }

  // Everything in it; the directories deepest first, which are the last found.
  Status run() {
    for (std::uint64_t id = 0; id < directories_.size(); ++id) FGSYNC_RETURN_IF_ERROR(empty(id));
    for (std::uint64_t id = directories_.size() - 1; id > 0; --id) {
      FGSYNC_RETURN_IF_ERROR(step_());
      auto parent = tree_.open(directories_[id].parent);
      if (!parent.ok()) return parent.status();
      FGSYNC_RETURN_IF_ERROR(files_.remove_directory(**parent, directories_[id].name));
    }
    return Status();
  }

 private:
  // Removes what is no directory.
  Status empty(std::uint64_t id) {
    auto directory = tree_.open(id);
    if (!directory.ok()) return directory.status();
    return for_each_name(files_, **directory,
                         [&](const std::string& name) { return remove(id, **directory, name); });
  }

  Status remove(std::uint64_t id, const io::FileHandle& directory, const std::string& name) {
    FGSYNC_RETURN_IF_ERROR(step_());
    Status removed = files_.unlink(directory, name);
    // POSIX says EPERM of a directory, Linux EISDIR.
    const int reason = removed.system_errno();
    if (reason == ENOENT) return Status();
    if (reason != EISDIR && reason != EPERM) return removed;
    auto inside = open_to_empty(files_, directory, name);
    if (!inside.ok()) return reason == EPERM ? removed : inside.status();
    auto status = files_.stat(*inside);
    if (!status.ok()) return status.status();
    if (status->mount != mount_) return mounted_here(name);
    tree_.add(directories_.size(), id, name);
    directories_.push_back({id, name});
    return Status();
  }

  io::FileSystem& files_;
  const std::uint64_t mount_;
  const TreeStep& step_;
  DirectoryTree tree_;
  std::vector<Directory> directories_;  // by number: parents first
};

}  // namespace

Status remove_tree(io::FileSystem& files, const io::FileHandle& parent, const std::string& name,
                   const TreeStep& step) {
  Status removed = files.unlink(parent, name);
  if (removed.ok() || removed.system_errno() == ENOENT) return Status();
  if (removed.system_errno() != EISDIR && removed.system_errno() != EPERM) return removed;
  auto root = open_to_empty(files, parent, name);
  if (!root.ok()) return root.status();
  auto outside = files.stat(parent);
  if (!outside.ok()) return outside.status();
  auto inside = files.stat(*root);
  if (!inside.ok()) return inside.status();
  if (inside->mount != outside->mount) return mounted_here(name);
  FGSYNC_RETURN_IF_ERROR(TreeRemoval(files, std::move(*root), inside->mount, step).run());
  return files.remove_directory(parent, name);
}

}  // namespace fgsync::storage
