#include "sim_file_system.h"

#include <algorithm>
#include <cerrno>

#include "base/assert.h"
#include "base/limits.h"
#include "process.h"

namespace fgsync::sim {
namespace {

class Listing final : public io::DirectoryReader {
 public:
  explicit Listing(std::vector<io::DirectoryEntry> entries) : entries_(std::move(entries)) {}
  Result<bool> next(std::size_t count, std::vector<io::DirectoryEntry>& entries) override {
    if (given_ == entries_.size()) return false;
    while (count-- > 0 && given_ < entries_.size()) entries.push_back(entries_[given_++]);
    return true;
  }

 private:
  const std::vector<io::DirectoryEntry> entries_;
  std::size_t given_ = 0;
};

Status failed(int error, const char* doing) { return Status::from_errno(error, doing); }

}  // namespace

SimFileSystem::SimFileSystem(Process& process)
    : process_(process), told_(process.host().disk.failed_syncs()) {}

SimFileSystem::~SimFileSystem() { FGSYNC_ASSERT(open_.empty()); }

int SimFileSystem::enter(FileCall call) {
  Host& host = process_.host();
  World& world = host.world;
  if (process_.alive() && world.random().percent(15)) {
    while (world.let_others() && world.random().percent(70)) {
    }
  }
  if (!process_.alive()) return EIO;
  const std::uint64_t number = ++host.calls;
  world.trace("file call", std::uint64_t(call), number, host.name);
  for (std::size_t i = 0; i < host.faults.size(); ++i) {
    const DiskFault fault = host.faults[i];
    if (number < fault.at || !fault.matches(call)) continue;
    host.faults.erase(host.faults.begin() + std::ptrdiff_t(i));
    world.trace("disk fault", std::uint64_t(fault.kind), std::uint64_t(fault.error));
    if (const int error = strike(fault)) return error;
    break;
  }
  const bool takes_space = call == FileCall::kCreate || call == FileCall::kWrite ||
                           call == FileCall::kTruncate || call == FileCall::kMakeDirectory ||
                           call == FileCall::kMakeSymlink;
  return host.full && takes_space ? ENOSPC : 0;
}

int SimFileSystem::strike(const DiskFault& fault) {
  Host& host = process_.host();
  const io::Duration spell = std::chrono::seconds(1 + host.world.random().below(8));
  switch (fault.kind) {
    case DiskFault::Kind::kError:
      return fault.error;
    case DiskFault::Kind::kFull:
      host.full = true;
      return 0;
    case DiskFault::Kind::kSlow:
      host.slow_until = host.world.now() + spell;
      return 0;
    case DiskFault::Kind::kLostWrite:
      host.loses_writes = true;
      return 0;
    case DiskFault::Kind::kShort:
      host.short_until = host.world.now() + spell;
      return 0;
    case DiskFault::Kind::kRot:
      host.on_rot();
      return 0;
    case DiskFault::Kind::kChange:
      host.somebody_else();
      return 0;
    case DiskFault::Kind::kKill:
      process_.kill();
      return EIO;
    case DiskFault::Kind::kPowerCut:
      host.cut_power();
      return EIO;
  }
  return 0;
}

Node* SimFileSystem::node_of(int descriptor) {
  const auto found = open_.find(descriptor);
  FGSYNC_ASSERT(found != open_.end());
  Node* const node = process_.host().disk.find(found->second.inode);
  return node;
}

void SimFileSystem::changed(const Node& node) {
  if (!process_.may_change()) {
    process_.world().violate("a dry run changes " + process_.host().disk.path_of(node));
  }
  if (process_.host().on_change) process_.host().on_change(node);
}

io::FileHandle SimFileSystem::open_node(const Node& node, bool direct, bool writable) {
  const int descriptor = process_.host().next_descriptor++;
  open_.emplace(descriptor, Open{node.inode, direct, writable});
  return io::FileHandle(this, descriptor);
}

Result<Node*> SimFileSystem::walk(const std::string& path, bool follow, int depth) {
  if (depth > 8) return failed(ELOOP, "looking");
  Disk& disk = process_.host().disk;
  Node* node = disk.find(Disk::kRoot);
  std::size_t start = 0;
  while (start < path.size()) {
    std::size_t end = path.find('/', start);
    if (end == std::string::npos) end = path.size();
    const std::string name = path.substr(start, end - start);
    const std::string rest = end < path.size() ? path.substr(end) : "";
    start = end + 1;
    if (name.empty() || name == ".") continue;
    if (node->type != io::FileType::kDirectory) return failed(ENOTDIR, "looking");
    const auto entry = node->entries.find(name);
    if (entry == node->entries.end()) return failed(ENOENT, "looking");
    Node* const next = disk.find(entry->second);
    if (next->type == io::FileType::kSymlink && (follow || !rest.empty())) {
      const std::string& target = next->link_target;
      const std::string base = target.starts_with('/') ? "" : disk.path_of(*node) + "/";
      return walk(base + target + rest, follow, depth + 1);
    }
    node = next;
  }
  return node;
}

Result<io::FileHandle> SimFileSystem::open_path(const std::string& path) {
  if (const int error = enter(FileCall::kOpen)) return failed(error, "opening");
  Result<Node*> node = walk(path, true);
  if (!node.ok()) return node.status();
  if ((*node)->type != io::FileType::kDirectory) return failed(ENOTDIR, "opening");
  return open_node(**node, false, false);
}

Result<io::FileStatus> SimFileSystem::stat_path(const std::string& path, bool follow) {
  if (const int error = enter(FileCall::kStat)) return failed(error, "looking");
  Result<Node*> node = walk(path, follow);
  if (!node.ok()) return node.status();
  return status_of(**node, false);
}

Status SimFileSystem::make_directory_path(const std::string& path, std::uint32_t mode) {
  if (const int error = enter(FileCall::kMakeDirectory)) return failed(error, "creating");
  const std::size_t slash = path.rfind('/');
  Result<Node*> parent = walk(path.substr(0, slash), true);
  if (!parent.ok()) return parent.status();
  const std::string name = path.substr(slash + 1);
  if ((*parent)->entries.contains(name)) return failed(EEXIST, "creating");
  Host& host = process_.host();
  changed(
      host.disk.create(**parent, name, io::FileType::kDirectory, mode & 0755, host.wall_time()));
  return Status();
}

Result<std::string> SimFileSystem::resolve_path(const std::string& path) {
  if (const int error = enter(FileCall::kStat)) return failed(error, "resolving");
  Result<Node*> node = walk(path, true);
  if (!node.ok()) return node.status();
  return process_.host().disk.path_of(**node);
}

Node* SimFileSystem::named(const io::FileHandle& base, const std::string& name, int& error) {
  FGSYNC_ASSERT(io::is_single_component(name));
  Node* const directory = node_of(base);
  error = ENOENT;
  if (directory == nullptr) return nullptr;
  const auto entry = directory->entries.find(name);
  if (entry == directory->entries.end()) return nullptr;
  error = 0;
  return process_.host().disk.find(entry->second);
}

Result<io::FileHandle> SimFileSystem::open_directory(const io::FileHandle& base,
                                                     const std::string& name) {
  int error = enter(FileCall::kOpen);
  if (error != 0) return failed(error, "opening");
  Node* const node = named(base, name, error);
  if (node == nullptr) return failed(error, "opening");
  if (node->type == io::FileType::kSymlink) return failed(ELOOP, "opening");
  if (node->type != io::FileType::kDirectory) return failed(ENOTDIR, "opening");
  return open_node(*node, false, false);
}

Result<io::FileHandle> SimFileSystem::open_file(const io::FileHandle& base, const std::string& name,
                                                io::OpenMode mode) {
  const bool direct = is_direct(mode);
  if (creates(mode)) {
    Node* made = nullptr;
    const int error = make_node(base, name, FileCall::kCreate, io::FileType::kRegular, 0600, &made);
    if (error != 0) return failed(error, "creating");
    if (direct && process_.host().direct_alignment == 0) {
      process_.host().disk.remove(*node_of(base), name, process_.host().wall_time());
      return failed(EINVAL, "creating");
    }
    return open_node(*made, direct, true);
  }
  int error = enter(FileCall::kOpen);
  if (error != 0) return failed(error, "opening");
  Node* const node = named(base, name, error);
  if (node == nullptr) return failed(error, "opening");
  if (node->type == io::FileType::kSymlink) return failed(ELOOP, "opening");
  if (node->type != io::FileType::kRegular) {
    return failed(node->type == io::FileType::kDirectory ? EISDIR : ENXIO, "opening");
  }
  if (direct && process_.host().direct_alignment == 0) return failed(EINVAL, "opening");
  return open_node(*node, direct, updates(mode));
}

Result<std::unique_ptr<io::DirectoryReader>> SimFileSystem::list(const io::FileHandle& directory) {
  if (const int error = enter(FileCall::kList)) return failed(error, "listing");
  Disk& disk = process_.host().disk;
  std::vector<io::DirectoryEntry> entries;
  if (const Node* const node = node_of(directory)) {
    const bool hints = disk.device() % 2 == 0;
    for (const auto& [name, inode] : node->entries) {
      entries.push_back({name, hints ? disk.find(inode)->type : io::FileType::kUnknown});
    }
  }
  // The order of a directory means nothing.
  for (std::size_t i = entries.size(); i > 1; --i) {
    std::swap(entries[i - 1], entries[process_.world().random().below(i)]);
  }
  return std::unique_ptr<io::DirectoryReader>(std::make_unique<Listing>(std::move(entries)));
}

io::FileStatus SimFileSystem::status_of(const Node& node, bool opened) const {
  const Host& host = process_.host();
  io::FileStatus status;
  status.type = node.type;
  status.mode = node.attributes.mode;
  status.uid = node.attributes.uid;
  status.gid = node.attributes.gid;
  status.size = node.data != nullptr ? node.data->size() : node.link_target.size();
  status.links = node.parent != 0 ? 1 : 0;
  status.mtime = node.attributes.mtime;
  status.ctime = node.ctime;
  status.device = node.mount;
  status.inode = node.inode;
  status.mount = node.mount;
  if (opened) status.direct_alignment = host.direct_alignment;
  return status;
}

Result<io::FileStatus> SimFileSystem::stat(const io::FileHandle& file) {
  if (const int error = enter(FileCall::kStat)) return failed(error, "looking");
  return status_of(*node_of(file), true);
}

Result<io::FileStatus> SimFileSystem::stat_at(const io::FileHandle& base, const std::string& name) {
  int error = enter(FileCall::kStat);
  if (error != 0) return failed(error, "looking");
  const Node* const node = named(base, name, error);
  if (node == nullptr) return failed(error, "looking");
  return status_of(*node, false);
}

Result<std::string> SimFileSystem::read_link(const io::FileHandle& base, const std::string& name) {
  int error = enter(FileCall::kStat);
  if (error != 0) return failed(error, "reading the symlink");
  const Node* const node = named(base, name, error);
  if (node != nullptr && node->type != io::FileType::kSymlink) error = EINVAL;
  if (error != 0) return failed(error, "reading the symlink");
  return node->link_target;
}

}  // namespace fgsync::sim
