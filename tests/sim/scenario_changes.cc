// What changes by itself: somebody works at the source, disks rot.
#include <algorithm>

#include "scenario_ends.h"

namespace fgsync::sim {

void Scenario::plan_source_change() {
  Random& random = world_.random();
  const std::int64_t later = std::int64_t(random.skewed(200'000'000));
  const std::uint64_t steps = 1 + random.below(3);
  // Between two calls of the sender, where it matters most, or at any moment.
  const bool at_call = random.percent(60);
  const std::uint64_t call = 1 + random.skewed(100);
  // Or before it begins: what an interrupted run has sent of it may be out of date.
  const bool at_rest = random.percent(20);
  if (is_left_out() || source_files_.empty()) return;
  if (at_rest) return change_source(/*at_rest=*/true);
  if (at_call) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      DiskFault fault;
      fault.kind = DiskFault::Kind::kChange;
      fault.at = source_.calls + call + i * 2;
      source_.faults.push_back(fault);
    }
    return;
  }
  for (std::uint64_t i = 0; i < steps; ++i) {
    const io::Duration time(later + std::int64_t(i * random.skewed(30'000'000)));
    world_.after(time, [this] { change_source(); });
  }
}

void Scenario::change_source(bool at_rest) {
  if (source_files_.empty() || (last_ && !at_rest)) return;
  Random& random = world_.random();
  Disk& disk = source_.disk;
  Node* file = disk.find(source_files_[random.below(
      std::min<std::size_t>(source_files_.size(), 1 + random.below(3)))]);
  // The largest is the longest under way.
  if (random.percent(40)) {
    for (const std::uint64_t inode : source_files_) {
      Node* const other = disk.find(inode);
      if (file == nullptr || (other != nullptr && other->data->size() > file->data->size())) {
        file = other;
      }
    }
  }
  // So does what an interrupted run has begun with: its receipt may name it already.
  if (at_rest && random.percent(50)) file = missing_at_target(file);
  if (file == nullptr || file->parent == 0) return;
  const std::string path = disk.path_of(*file).substr(std::string(kSourceRoot).size() + 1);
  const std::uint64_t choice = random.below(at_rest ? 2 : 6);
  const io::FileTime now = source_.wall_time();
  world_.trace("source changes", choice, file->inode, path);
  const std::uint64_t size = file->data->size();
  if (choice == 0) {
    Node& directory = *disk.find(file->parent);
    const std::string name = file->name;
    disk.remove(directory, name, now);
    ledger_.source_changed(path, nullptr, world_.now());
    if (random.percent(50)) return;
    Node& other = disk.create(directory, name, io::FileType::kRegular, 0644, now);
    disk.replace(other, random.bytes(size), now);
    ledger_.source_changed(path, &other, world_.now());
    return;
  }
  if (choice == 1) {
    disk.truncate(*file, random.below(size + 1), now);
  } else if (choice == 2) {
    disk.write(*file, random.bytes(1 + random.below(1000)), size, now);
  } else {
    // In place: between two steps of it the file is neither the old nor the new one, but what it
    // is at that moment.
    const std::uint64_t offset = random.below(size + 1);
    disk.write(*file, random.bytes(random.below(size - offset + 1)), offset, now);
  }
  ledger_.source_changed(path, file, world_.now());
}

// The first file of the source that has no name at the target; `otherwise` if each has.
Node* Scenario::missing_at_target(Node* otherwise) {
  for (const std::uint64_t inode : source_files_) {
    Node* const file = source_.disk.find(inode);
    if (file == nullptr || file->parent == 0) continue;
    const std::string path = source_.disk.path_of(*file).substr(std::string(kSourceRoot).size());
    if (target_.disk.find_path(kTargetRoot + path) == nullptr) return file;
  }
  return otherwise;
}

// At the source, and at the target of what has its final name. Between writing and renaming, be it
// in one run or in two, noticing it would take reading it back.
void Scenario::let_rot(Host& host) {
  const bool at_source = &host == &source_;
  const std::string root = at_source ? kSourceRoot : kTargetRoot;
  const Node* const directory = host.disk.find_path(root);
  if (directory == nullptr) return;
  std::vector<Node*> files = host.disk.files_at_rest(directory->inode);
  std::erase_if(files, [&](Node* file) { return host.disk.is_in_state_directory(*file); });
  if (files.empty()) return;
  Node& file = *files[world_.random().below(files.size())];
  const std::string path = host.disk.path_of(file);
  const std::shared_ptr<Bytes> before = file.data;
  host.disk.rot(file, world_.random());
  world_.trace("rots", file.inode, 0, path);
  ledger_.rotted(path.substr(root.size() + 1), file, *before);
  // Where contents are compared, what has rotted at the source becomes a second version of one size
  // and time: a record of the one may be met by the other after a power cut.
  const bool is_sent = plan_.changes.comparison == Comparison::kContents;
  if (!at_source || is_sent) rotted_.insert(path.substr(root.size() + 1));
}

// After a power cut at the source: what is left of it is what it is now.
void Scenario::take_down_source() {
  const std::size_t prefix = std::string(kSourceRoot).size() + 1;
  for (const std::string& path : ledger_.source_files()) {
    const Node* const found = source_.disk.find_path(kSourceRoot + ("/" + path));
    if (found == nullptr || found->data == nullptr) {
      ledger_.source_changed(path, nullptr, world_.now());
      continue;
    }
    Node& file = *source_.disk.find(found->inode);
    if (ledger_.knows(path, file)) continue;
    // Other contents under an old time can't be told from a replicated file by size and time, and
    // are not claimed to be.
    file.attributes.mtime = file.durable_attributes.mtime = source_.wall_time();
    ledger_.source_changed(source_.disk.path_of(file).substr(prefix), &file, world_.now());
  }
}

}  // namespace fgsync::sim
