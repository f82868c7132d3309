// Names, attributes and locks.
#include <cerrno>

#include "base/assert.h"
#include "process.h"
#include "sim_file_system.h"
#include "storage/tree_walker.h"

namespace fgsync::sim {
namespace {

Status failed(int error, const char* doing) { return Status::from_errno(error, doing); }

}  // namespace

int SimFileSystem::make_node(const io::FileHandle& base, const std::string& name, FileCall call,
                             io::FileType type, std::uint32_t mode, Node** made) {
  FGSYNC_ASSERT(io::is_single_component(name));
  if (const int error = enter(call)) return error;
  Node* const directory = node_of(base);
  if (directory == nullptr || (directory->parent == 0 && directory->inode != Disk::kRoot)) {
    return ENOENT;
  }
  if (directory->entries.contains(name)) return EEXIST;
  Host& host = process_.host();
  *made = &host.disk.create(*directory, name, type, mode, host.wall_time());
  if (type != io::FileType::kSymlink) changed(**made);
  return 0;
}

Status SimFileSystem::make_directory(const io::FileHandle& base, const std::string& name,
                                     std::uint32_t mode) {
  if (process_.host().refuses_state && name == storage::kStateDirectoryName) {
    return failed(EACCES, "creating");
  }
  Node* made = nullptr;
  const int error =
      make_node(base, name, FileCall::kMakeDirectory, io::FileType::kDirectory, mode, &made);
  return error == 0 ? Status() : failed(error, "creating");
}

Status SimFileSystem::make_symlink(const io::FileHandle& base, const std::string& name,
                                   const std::string& target) {
  Node* made = nullptr;
  const int error =
      make_node(base, name, FileCall::kMakeSymlink, io::FileType::kSymlink, 0777, &made);
  if (error != 0) return failed(error, "creating");
  made->link_target = target;
  changed(*made);
  return Status();
}

Status SimFileSystem::make_special(const io::FileHandle& base, const std::string& name,
                                   io::FileType type, std::uint32_t mode) {
  Node* made = nullptr;
  const int error = make_node(base, name, FileCall::kCreate, type, mode, &made);
  return error == 0 ? Status() : failed(error, "creating");
}

Status SimFileSystem::rename(const io::FileHandle& from_base, const std::string& from,
                             const io::FileHandle& to_base, const std::string& to) {
  int error = enter(FileCall::kRename);
  if (error != 0) return failed(error, "renaming");
  Node* const moved = named(from_base, from, error);
  if (moved == nullptr) return failed(error, "renaming");
  Node* const directory = node_of(to_base);
  if (directory == nullptr || (directory->parent == 0 && directory->inode != Disk::kRoot)) {
    return failed(ENOENT, "renaming");
  }
  if (directory->mount != moved->mount) return failed(EXDEV, "renaming");
  Host& host = process_.host();
  if (const auto there = directory->entries.find(to); there != directory->entries.end()) {
    const Node& replaced = *host.disk.find(there->second);
    if (replaced.type == io::FileType::kDirectory) return failed(EISDIR, "renaming");
  }
  host.disk.rename(*node_of(from_base), from, *directory, to, host.wall_time());
  changed(*moved);
  const auto holds_lock = [&](std::uint64_t inode) {
    const auto lock = host.locks.find(inode);
    return lock != host.locks.end() && open_.contains(lock->second);
  };
  if (host.on_rename) host.on_rename(*moved, holds_lock);
  return Status();
}

Status SimFileSystem::exchange(const io::FileHandle& base, const std::string& name,
                               const io::FileHandle& other_base, const std::string& other) {
  int error = enter(FileCall::kRename);
  if (error != 0) return failed(error, "exchanging");
  Host& host = process_.host();
  if (!host.has_exchange) return failed(EINVAL, "exchanging");
  Node* const one = named(base, name, error);
  Node* const two = error == 0 ? named(other_base, other, error) : nullptr;
  if (error != 0) return failed(error, "exchanging");
  if (one->mount != two->mount) return failed(EXDEV, "exchanging");
  host.disk.exchange(*node_of(base), name, *node_of(other_base), other, host.wall_time());
  changed(*one);
  changed(*two);
  return Status();
}

Status SimFileSystem::link(const io::FileHandle& from_base, const std::string& from,
                           const io::FileHandle& to_base, const std::string& to) {
  int error = enter(FileCall::kCreate);
  if (error != 0) return failed(error, "linking");
  Host& host = process_.host();
  const Node* const file = named(from_base, from, error);
  if (error == 0 && file->type == io::FileType::kDirectory) error = EPERM;
  if (error == 0 && !host.has_links) error = EPERM;
  Node* const directory = node_of(to_base);
  if (error == 0 && directory->entries.contains(to)) error = EEXIST;
  if (error == 0 && directory->mount != file->mount) error = EXDEV;
  if (error != 0) return failed(error, "linking");
  changed(host.disk.link(*file, *directory, to, host.wall_time()));
  return Status();
}

Status SimFileSystem::unlink(const io::FileHandle& base, const std::string& name) {
  int error = enter(FileCall::kRemove);
  if (error != 0) return failed(error, "removing");
  Node* const node = named(base, name, error);
  if (node != nullptr && node->type == io::FileType::kDirectory) error = EISDIR;
  if (error != 0) return failed(error, "removing");
  Host& host = process_.host();
  host.disk.remove(*node_of(base), name, host.wall_time());
  changed(*node_of(base));
  return Status();
}

Status SimFileSystem::remove_directory(const io::FileHandle& base, const std::string& name) {
  int error = enter(FileCall::kRemove);
  if (error != 0) return failed(error, "removing");
  Node* const node = named(base, name, error);
  if (node != nullptr && node->type != io::FileType::kDirectory) error = ENOTDIR;
  if (error == 0 && !node->entries.empty()) error = ENOTEMPTY;
  if (error != 0) return failed(error, "removing");
  Host& host = process_.host();
  host.disk.remove(*node_of(base), name, host.wall_time());
  changed(*node_of(base));
  return Status();
}

template <typename Change>
Status SimFileSystem::change_attributes(Node* node, const char* doing, Change change) {
  if (node == nullptr) return failed(ENOENT, doing);
  change(node->attributes);
  node->ctime = process_.host().wall_time();
  changed(*node);
  return Status();
}

Status SimFileSystem::set_mode(const io::FileHandle& file, std::uint32_t mode) {
  if (const int error = enter(FileCall::kAttributes)) return failed(error, "setting the mode");
  return change_attributes(node_of(file), "setting the mode",
                           [&](Attributes& attributes) { attributes.mode = mode; });
}

Status SimFileSystem::set_owner(const io::FileHandle& file, std::uint32_t uid, std::uint32_t gid) {
  if (const int error = enter(FileCall::kAttributes)) return failed(error, "setting the owner");
  return change_attributes(node_of(file), "setting the owner", [&](Attributes& attributes) {
    attributes.uid = uid;
    attributes.gid = gid;
    attributes.mode &= 01777;
  });
}

Status SimFileSystem::set_mtime(const io::FileHandle& file, io::FileTime mtime) {
  if (const int error = enter(FileCall::kAttributes)) return failed(error, "setting the time");
  return change_attributes(node_of(file), "setting the time",
                           [&](Attributes& attributes) { attributes.mtime = mtime; });
}

Status SimFileSystem::set_mode_at(const io::FileHandle& base, const std::string& name,
                                  std::uint32_t mode) {
  int error = enter(FileCall::kAttributes);
  if (error != 0) return failed(error, "setting the mode");
  Node* const node = named(base, name, error);
  if (node != nullptr && node->type == io::FileType::kSymlink) {
    return failed(EOPNOTSUPP, "setting the mode");
  }
  return change_attributes(node, "setting the mode",
                           [&](Attributes& attributes) { attributes.mode = mode; });
}

Status SimFileSystem::set_owner_at(const io::FileHandle& base, const std::string& name,
                                   std::uint32_t uid, std::uint32_t gid) {
  int error = enter(FileCall::kAttributes);
  if (error != 0) return failed(error, "setting the owner");
  Node* const node = named(base, name, error);
  return change_attributes(node, "setting the owner", [&](Attributes& attributes) {
    attributes.uid = uid;
    attributes.gid = gid;
    if (node->type != io::FileType::kSymlink) attributes.mode &= 01777;
  });
}

Status SimFileSystem::set_mtime_at(const io::FileHandle& base, const std::string& name,
                                   io::FileTime mtime) {
  int error = enter(FileCall::kAttributes);
  if (error != 0) return failed(error, "setting the time");
  Node* const node = named(base, name, error);
  return change_attributes(node, "setting the time",
                           [&](Attributes& attributes) { attributes.mtime = mtime; });
}

Result<bool> SimFileSystem::try_lock(const io::FileHandle& directory) {
  if (const int error = enter(FileCall::kLock)) return failed(error, "locking");
  if (!process_.host().has_locks) return true;
  auto& locks = process_.host().locks;
  return locks.emplace(open_.at(directory.descriptor()).inode, directory.descriptor()).second;
}

void SimFileSystem::close(int descriptor) {
  const auto found = open_.find(descriptor);
  FGSYNC_ASSERT(found != open_.end());
  auto& locks = process_.host().locks;
  const auto lock = locks.find(found->second.inode);
  if (lock != locks.end() && lock->second == descriptor) locks.erase(lock);
  open_.erase(found);
}

void SimFileSystem::drop_locks() {
  auto& locks = process_.host().locks;
  for (const auto& [descriptor, open] : open_) {
    const auto lock = locks.find(open.inode);
    if (lock != locks.end() && lock->second == descriptor) locks.erase(lock);
  }
}

}  // namespace fgsync::sim
