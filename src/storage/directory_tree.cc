#include "storage/directory_tree.h"

#include <utility>
#include <vector>

#include "base/assert.h"

namespace fgsync::storage {
namespace {

constexpr std::uint64_t kRootId = 0;

}  // namespace

DirectoryTree::DirectoryTree(io::FileSystem& files, io::FileHandle root, std::size_t open_max)
    : files_(files),
      root_(std::make_shared<const io::FileHandle>(std::move(root))),
      open_max_(open_max) {
  FGSYNC_ASSERT(open_max_ > 0);
}

void DirectoryTree::set_root(io::FileHandle root) {
  const std::lock_guard lock(mutex_);
  FGSYNC_ASSERT(nodes_.empty());
  root_ = std::make_shared<const io::FileHandle>(std::move(root));
}

bool DirectoryTree::is_empty() const {
  const std::lock_guard lock(mutex_);
  return nodes_.empty();
}

bool DirectoryTree::add(std::uint64_t id, std::uint64_t parent, std::string name) {
  if (id == kRootId || !io::is_single_component(name)) return false;
  const std::lock_guard lock(mutex_);
  // A parent comes first, so that no chain of parents can be a circle.
  if (parent != kRootId && !nodes_.contains(parent)) return false;
  Node node;
  node.parent = parent;
  node.name = std::move(name);
  return nodes_.try_emplace(id, std::move(node)).second;
}

bool DirectoryTree::contains(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  return id == kRootId || nodes_.contains(id);
}

std::uint64_t DirectoryTree::parent_of(std::uint64_t id) const {
  std::lock_guard lock(mutex_);
  const auto found = nodes_.find(id);
  FGSYNC_ASSERT(id == 0 || found != nodes_.end());
  return id == 0 ? 0 : found->second.parent;
}

Result<DirectoryReference> DirectoryTree::nearest_held(std::uint64_t id,
                                                       std::vector<Step>& missing) {
  const std::lock_guard lock(mutex_);
  while (id != kRootId) {
    const auto found = nodes_.find(id);
    if (found == nodes_.end()) return Status(ErrorCode::kNotFound, "opening: unknown directory");
    Node& node = found->second;
    if (node.handle != nullptr) {
      recently_used_.splice(recently_used_.begin(), recently_used_, node.use);
      return node.handle;
    }
    missing.push_back({id, node.name});
    id = node.parent;
  }
  return root_;
}

// The mutex is not held while the kernel opens: a slow directory delays only who needs it.
Result<DirectoryReference> DirectoryTree::open(std::uint64_t id) {
  std::vector<Step> missing;
  auto at = nearest_held(id, missing);
  if (!at.ok()) return at;
  DirectoryReference directory = std::move(*at);
  for (; !missing.empty(); missing.pop_back()) {
    auto handle = files_.open_directory(*directory, missing.back().name);
    if (!handle.ok()) return handle.status();
    directory = hold(missing.back().id, std::move(*handle));
  }
  return directory;
}

DirectoryReference DirectoryTree::hold(std::uint64_t id, io::FileHandle handle) {
  const std::lock_guard lock(mutex_);
  Node& node = nodes_.at(id);
  // Another thread may have opened it meanwhile; then its handle serves both.
  if (node.handle != nullptr) return node.handle;
  if (recently_used_.size() == open_max_) {
    nodes_.at(recently_used_.back()).handle.reset();
    recently_used_.pop_back();
  }
  node.handle = std::make_shared<const io::FileHandle>(std::move(handle));
  recently_used_.push_front(id);
  node.use = recently_used_.begin();
  return node.handle;
}

std::string DirectoryTree::path_of(std::uint64_t id, const std::string& name) const {
  std::vector<const std::string*> components;
  if (!name.empty()) components.push_back(&name);
  std::string path;
  const std::lock_guard lock(mutex_);
  while (id != kRootId) {
    const auto found = nodes_.find(id);
    if (found == nodes_.end()) break;
    components.push_back(&found->second.name);
    id = found->second.parent;
  }
  for (; !components.empty(); components.pop_back()) {
    if (!path.empty()) path += '/';
    path += *components.back();
  }
  return path;
}

}  // namespace fgsync::storage
