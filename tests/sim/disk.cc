#include "disk.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <ranges>

#include "base/assert.h"
#include "storage/tree_walker.h"

namespace fgsync::sim {
namespace {

constexpr std::size_t kPageBytes = 4096;

std::size_t pages_of(std::size_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes; }

// One page of it, as far as it is there.
std::span<const std::byte> page_of(const Bytes& bytes, std::size_t page) {
  const std::size_t start = std::min(page * kPageBytes, bytes.size());
  return std::span(bytes).subspan(start, std::min(kPageBytes, bytes.size() - start));
}

// Zeros where the other one has nothing.
void take_page(Bytes& bytes, std::size_t page, const Bytes& from) {
  const std::span<const std::byte> taken = page_of(from, page);
  const std::size_t start = page * kPageBytes;
  const std::size_t end = std::min(start + kPageBytes, bytes.size());
  for (std::size_t i = start; i < end; ++i) {
    bytes[i] = i - start < taken.size() ? taken[i - start] : std::byte{0};
  }
}

}  // namespace

Disk::Disk(std::uint64_t device) : device_(device) {
  Node root;
  root.inode = next_inode_++;
  root.type = io::FileType::kDirectory;
  root.mount = device;
  root.attributes.mode = 0755;
  root.durable_attributes = root.attributes;
  nodes_.emplace(kRoot, std::move(root));
}

Node* Disk::find(std::uint64_t inode) {
  const auto found = nodes_.find(inode);
  return found == nodes_.end() ? nullptr : &found->second;
}

const Node* Disk::find(std::uint64_t inode) const { return const_cast<Disk*>(this)->find(inode); }

const Node* Disk::find_path(const std::string& path) const {
  const Node* node = find(kRoot);
  std::size_t start = 0;
  while (node != nullptr && start < path.size()) {
    std::size_t end = path.find('/', start);
    if (end == std::string::npos) end = path.size();
    const std::string name = path.substr(start, end - start);
    start = end + 1;
    if (name.empty()) continue;
    const auto entry = node->entries.find(name);
    node = entry == node->entries.end() ? nullptr : find(entry->second);
  }
  return node;
}

std::string Disk::path_of(const Node& node) const {
  std::string path;
  for (const Node* at = &node; at->inode != kRoot;) {
    path = "/" + at->name + path;
    at = find(at->parent);
    if (at == nullptr) return "(removed)" + path;
  }
  return path.empty() ? "/" : path;
}

bool Disk::is_below(const Node& node, std::uint64_t directory) const {
  for (const Node* at = &node; at != nullptr; at = find(at->parent)) {
    if (at->inode == directory) return true;
  }
  return false;
}

bool Disk::is_in_state_directory(const Node& node) const {
  for (const Node* at = &node; at != nullptr; at = find(at->parent)) {
    if (at->name == storage::kStateDirectoryName) return true;
  }
  return false;
}

Node& Disk::create(Node& directory, const std::string& name, io::FileType type, std::uint32_t mode,
                   io::FileTime now) {
  Node node;
  node.inode = next_inode_++;
  node.type = type;
  node.mount = directory.mount;
  node.attributes = {mode, 0, 0, now};
  node.durable_attributes = node.attributes;
  node.ctime = now;
  if (type == io::FileType::kRegular) {
    node.data = std::make_shared<Bytes>();
    node.durable_data = node.data;
  }
  node.parent = directory.inode;
  node.name = name;
  directory.entries[name] = node.inode;
  directory.attributes.mtime = directory.ctime = now;
  pending_.push_back({directory.inode, name, node.inode, 0, {}, 0});
  return nodes_.emplace(node.inode, std::move(node)).first->second;
}

void Disk::detach(Node& directory, const std::string& name) {
  const auto entry = directory.entries.find(name);
  if (entry == directory.entries.end()) return;
  find(entry->second)->parent = 0;
  directory.entries.erase(entry);
}

void Disk::rename(Node& from, const std::string& from_name, Node& to, const std::string& to_name,
                  io::FileTime now) {
  Node& moved = *find(from.entries.at(from_name));
  from.entries.erase(from_name);
  detach(to, to_name);
  to.entries[to_name] = moved.inode;
  moved.parent = to.inode;
  moved.name = to_name;
  moved.ctime = from.ctime = to.ctime = now;
  from.attributes.mtime = to.attributes.mtime = now;
  pending_.push_back({to.inode, to_name, moved.inode, from.inode, from_name, 0});
}

void Disk::exchange(Node& directory, const std::string& name, Node& other_directory,
                    const std::string& other_name, io::FileTime now) {
  Node& one = *find(directory.entries.at(name));
  Node& other = *find(other_directory.entries.at(other_name));
  std::swap(directory.entries.at(name), other_directory.entries.at(other_name));
  std::swap(one.parent, other.parent);
  std::swap(one.name, other.name);
  one.ctime = other.ctime = directory.ctime = other_directory.ctime = now;
  directory.attributes.mtime = other_directory.attributes.mtime = now;
  pending_.push_back(
      {other_directory.inode, other_name, one.inode, directory.inode, name, other.inode});
}

Node& Disk::link(const Node& file, Node& directory, const std::string& name, io::FileTime now) {
  Node& linked = create(directory, name, file.type, file.attributes.mode, now);
  linked.attributes = file.attributes;
  linked.durable_attributes = file.durable_attributes;
  linked.data = file.data;
  linked.durable_data = file.durable_data;
  linked.lost_pages = file.lost_pages;
  linked.loss_untold = file.loss_untold;
  return linked;
}

void Disk::remove(Node& directory, const std::string& name, io::FileTime now) {
  detach(directory, name);
  directory.attributes.mtime = directory.ctime = now;
  pending_.push_back({directory.inode, name, 0, 0, {}, 0});
}

Bytes& Disk::own_data(Node& node) {
  if (node.data.use_count() > 1) node.data = std::make_shared<Bytes>(*node.data);
  return *node.data;
}

void Disk::write(Node& node, std::span<const std::byte> bytes, std::uint64_t offset,
                 io::FileTime now) {
  Bytes& data = own_data(node);
  if (data.size() < offset + bytes.size()) data.resize(offset + bytes.size());
  std::copy(bytes.begin(), bytes.end(), data.begin() + std::ptrdiff_t(offset));
  if (!bytes.empty()) {
    node.lost_pages.erase(node.lost_pages.lower_bound(offset / kPageBytes),
                          node.lost_pages.upper_bound((offset + bytes.size() - 1) / kPageBytes));
  }
  node.attributes.mtime = node.ctime = now;
}

void Disk::truncate(Node& node, std::uint64_t size, io::FileTime now) {
  own_data(node).resize(size);
  node.lost_pages.erase(node.lost_pages.lower_bound(pages_of(size)), node.lost_pages.end());
  node.attributes.mtime = node.ctime = now;
}

void Disk::replace(Node& node, const Bytes& bytes, io::FileTime now) {
  truncate(node, 0, now);
  write(node, bytes, 0, now);
}

void Disk::make_durable(const EntryChange& change) {
  Node* const directory = find(change.directory);
  if (change.from_directory != 0) {
    auto& source = find(change.from_directory)->durable_entries;
    const auto entry = source.find(change.from_name);
    if (change.exchanged != 0) {
      source[change.from_name] = change.exchanged;
    } else if (entry != source.end() && entry->second == change.inode) {
      source.erase(entry);
    }
  }
  if (change.inode != 0) {
    directory->durable_entries[change.name] = change.inode;
  } else {
    directory->durable_entries.erase(change.name);
  }
}

std::shared_ptr<Bytes> Disk::written(const Node& node) {
  if (node.lost_pages.empty()) return node.data;
  auto result = std::make_shared<Bytes>(*node.data);
  for (const std::size_t page : node.lost_pages) take_page(*result, page, *node.durable_data);
  return result;
}

void Disk::sync_data(Node& node) {
  if (node.type == io::FileType::kRegular) node.durable_data = written(node);
}

void Disk::sync(Node& node) {
  sync_data(node);
  node.durable_attributes = node.attributes;
  if (node.type != io::FileType::kDirectory) return;
  make_entries_durable(node.inode);
}

// What changes the directory's entries; and what the names in these changes were before: a journal
// has it in front of them, and no file system brings it to the disk behind them.
void Disk::make_entries_durable(std::uint64_t directory) {
  std::set<std::pair<std::uint64_t, std::string>> names;
  std::vector<EntryChange> others;
  std::vector<EntryChange> durable;
  for (; !pending_.empty(); pending_.pop_back()) {
    EntryChange& change = pending_.back();
    const std::pair name(change.directory, change.name);
    const std::pair from(change.from_directory, change.from_name);
    const bool is_meant = change.directory == directory || change.from_directory == directory ||
                          names.contains(name) || names.contains(from);
    if (is_meant) {
      names.insert(name);
      if (change.from_directory != 0) names.insert(from);
    }
    (is_meant ? durable : others).push_back(std::move(change));
  }
  for (const EntryChange& change : durable | std::views::reverse) make_durable(change);
  pending_.assign(std::make_move_iterator(others.rbegin()), std::make_move_iterator(others.rend()));
}

void Disk::sync_mount(std::uint64_t mount) {
  std::vector<EntryChange> others;
  for (EntryChange& change : pending_) {
    if (find(change.directory)->mount == mount) {
      make_durable(change);
    } else {
      others.push_back(std::move(change));
    }
  }
  pending_ = std::move(others);
  for (auto& [inode, node] : nodes_) {
    if (node.mount != mount) continue;
    sync_data(node);
    node.durable_attributes = node.attributes;
  }
}

void Disk::drop_cached(Node& node) {
  if (node.lost_pages.empty()) return;
  node.data = written(node);
  node.lost_pages.clear();
}

void Disk::fail_sync(Node& node) {
  if (node.durable_data == node.data) return;
  for (std::size_t page = 0; page < pages_of(node.data->size()); ++page) {
    const bool same =
        std::ranges::equal(page_of(*node.data, page), page_of(*node.durable_data, page));
    if (!same) node.lost_pages.insert(page);
  }
}

void Disk::fail_sync_mount(std::uint64_t mount, bool silently, Random& random) {
  if (!silently) ++failed_syncs_[mount];
  for (auto& [inode, node] : nodes_) {
    if (node.mount != mount || node.durable_data == node.data || !random.percent(60)) continue;
    fail_sync(node);
    node.loss_untold = !silently;
  }
}

// Each page is the old one, the new one, or (where the file has grown) zeros.
std::shared_ptr<Bytes> Disk::torn(const Node& node, Random& random) {
  const std::uint64_t choice = random.below(4);
  if (choice == 0) return std::make_shared<Bytes>(*node.durable_data);
  auto result = std::make_shared<Bytes>(*written(node));
  if (choice == 1) return result;
  if (random.percent(50)) result->resize(node.durable_data->size());
  for (std::size_t page = 0; page < pages_of(result->size()); ++page) {
    if (random.percent(50)) take_page(*result, page, *node.durable_data);
  }
  return result;
}

void Disk::crash(Random& random) {
  // A journal keeps a beginning of the changes, other file systems any of them.
  const std::uint64_t share = std::array<std::uint64_t, 4>{0, 20, 50, 100}[random.below(4)];
  const bool in_order = random.percent(50);
  for (const EntryChange& change : pending_) {
    const bool kept = random.percent(share);
    if (!kept && in_order) break;
    if (kept) make_durable(change);
  }
  pending_.clear();
  std::map<std::uint64_t, Node> left;
  std::vector<std::uint64_t> open = {kRoot};
  while (!open.empty()) {
    const std::uint64_t inode = open.back();
    open.pop_back();
    Node node = std::move(nodes_.at(inode));
    if (random.percent(50)) node.durable_attributes = node.attributes;
    node.attributes = node.durable_attributes;
    if (node.data != node.durable_data) node.data = torn(node, random);
    node.durable_data = node.data;
    node.lost_pages.clear();
    node.loss_untold = false;
    node.entries.clear();
    for (const auto& [name, child] : node.durable_entries) {
      const auto found = nodes_.find(child);
      // Two names for one inode can't be: a rename is kept whole or not at all.
      if (found == nodes_.end() || left.contains(child)) continue;
      found->second.parent = inode;
      found->second.name = name;
      node.entries.emplace(name, child);
      open.push_back(child);
    }
    node.durable_entries = node.entries;
    left.emplace(inode, std::move(node));
  }
  nodes_ = std::move(left);
}

void Disk::rot(Node& file, Random& random) {
  Bytes& data = own_data(file);
  data[random.below(data.size())] ^= std::byte(1u << random.below(8));
  file.durable_data = file.data;
}

std::vector<Node*> Disk::files_at_rest(std::uint64_t directory) {
  std::vector<Node*> files;
  for (auto& [inode, node] : nodes_) {
    const bool at_rest = node.data != nullptr && node.data == node.durable_data;
    if (at_rest && !node.data->empty() && is_below(node, directory)) files.push_back(&node);
  }
  return files;
}

}  // namespace fgsync::sim
