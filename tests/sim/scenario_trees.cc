// The trees that a seed begins with.
#include <array>

#include "scenario.h"

namespace fgsync::sim {
namespace {

constexpr std::uint64_t kChunkBytes = 64 * 1024;

io::FileTime old_time(Random& random) {
  return {std::int64_t(1'600'000'000 + random.below(1000)),
          std::uint32_t(random.below(1'000'000'000))};
}

// The sizes where something begins or ends, and some between them.
std::uint64_t choose_size(Random& random) {
  switch (random.below(10)) {
    case 0:
      return 0;
    case 1:
      return 1 + random.below(4);
    case 2:
      return kChunkBytes;
    case 3:
      return kChunkBytes + 1;
    case 4:
      return kChunkBytes * (2 + random.below(2));
    case 5:
      return kChunkBytes * 2 + random.below(4 * kChunkBytes);
    case 6:
      return 256 * 1024 + random.below(kChunkBytes * 10);
    default:
      return random.skewed(20'000);
  }
}

}  // namespace

void Scenario::make_file(Node& directory, const std::string& name) {
  Random& random = world_.random();
  // Files of one size are the likelier to be taken for each other.
  std::uint64_t size = choose_size(random);
  if (!sizes_used_.empty() && random.percent(30)) {
    size = sizes_used_[random.below(sizes_used_.size())];
  }
  const Bytes bytes = random.bytes(size);
  const std::uint32_t mode = random.percent(70) ? 0644 : std::uint32_t(random.below(07777));
  const io::FileTime time = old_time(random);
  const std::uint32_t uid = random.percent(80) ? 0 : 1000;
  sizes_used_.push_back(size);
  Node& file =
      source_.disk.create(directory, name, io::FileType::kRegular, mode, source_.wall_time());
  source_.disk.replace(file, bytes, source_.wall_time());
  file.attributes = {mode, uid, uid, time};
  source_files_.push_back(file.inode);
}

void Scenario::make_directory(Node& directory, int depth) {
  Random& random = world_.random();
  const std::uint64_t files = random.skewed(depth == 0 ? 10 : 4);
  for (std::uint64_t i = 0; i < files; ++i) make_file(directory, "f" + std::to_string(i));
  for (const std::string& marker : MarkerWatch::names()) {
    if (random.percent(8)) make_file(directory, marker);
  }
  if (random.percent(25)) {
    Node& link =
        source_.disk.create(directory, "link", io::FileType::kSymlink, 0777, source_.wall_time());
    link.link_target = random.percent(50) ? "f0" : "/outside/f0";
    link.attributes.mtime = old_time(random);
  }
  if (random.percent(2)) {
    source_.disk.create(directory, "fifo", io::FileType::kFifo, 0644, source_.wall_time());
    obstructed_ = true;
  }
  for (std::uint64_t i = 0; depth < 3 && i < random.skewed(3); ++i) {
    Node& below = source_.disk.create(directory, "d" + std::to_string(i), io::FileType::kDirectory,
                                      0755, source_.wall_time());
    make_directory(below, depth + 1);
    below.attributes.mode = random.percent(80) ? 0755 : 0700;
    below.attributes.mtime = old_time(random);
  }
}

// What an earlier run, or somebody else, has left: the same files, older ones, other things under
// the same names, and names of its own.
void Scenario::make_old_target(const Node& source, Node& target, int depth) {
  Random& random = world_.random();
  Disk& disk = target_.disk;
  for (const auto& [name, inode] : source.entries) {
    const Node& from = *source_.disk.find(inode);
    const std::uint64_t choice = random.below(100);
    const io::FileTime now = target_.wall_time();
    if (choice < 30) continue;
    if (from.type == io::FileType::kDirectory && choice < 85) {
      Node& to = disk.create(target, name, from.type, 0755, now);
      // A mount of its own.
      if (depth == 0 && random.percent(10)) to.mount = 77;
      make_old_target(from, to, depth + 1);
    } else if (from.type == io::FileType::kSymlink && choice < 85) {
      disk.create(target, name, from.type, 0777, now).link_target =
          random.percent(50) ? from.link_target : "elsewhere";
    } else if (from.type == io::FileType::kRegular && choice < 92) {
      Node& to = disk.create(target, name, from.type, 0600, now);
      const bool same = random.percent(40);
      const std::uint64_t size = random.percent(50) ? from.data->size() : choose_size(random);
      disk.replace(to, same ? *from.data : random.bytes(size), now);
      to.attributes.mtime = same ? from.attributes.mtime : old_time(random);
    } else if (from.type == io::FileType::kDirectory) {
      // Where a directory must go: what leads out of the tree is the most tempting.
      disk.create(target, name, io::FileType::kSymlink, 0777, now).link_target = "/outside";
    } else if (random.percent(30)) {
      disk.create(target, name, io::FileType::kDirectory, 0755, now);
      obstructed_ = true;
    } else if (from.type == io::FileType::kRegular) {
      disk.create(target, name, io::FileType::kSymlink, 0777, now).link_target = "/outside/f0";
    }
  }
  if (random.percent(30)) {
    Node& own = disk.create(target, "own", io::FileType::kRegular, 0644, target_.wall_time());
    disk.replace(own, random.bytes(100), target_.wall_time());
  }
}

// At the end, so that those which stay are the same as without a limit.
void Scenario::leave_files_out() {
  while (source_files_.size() > limits_.files_max) {
    const Node& file = *source_.disk.find(source_files_.back());
    source_.disk.remove(*source_.disk.find(file.parent), std::string(file.name),
                        source_.wall_time());
    source_files_.pop_back();
  }
  file_count_ = source_files_.size();
}

void Scenario::make_trees() {
  Random& random = world_.random();
  for (Host* host : {&source_, &target_}) {
    Node& root = *host->disk.find(Disk::kRoot);
    host->disk.create(root, "data", io::FileType::kDirectory, 0755, host->wall_time());
    Node& outside =
        host->disk.create(root, "outside", io::FileType::kDirectory, 0755, host->wall_time());
    Node& file = host->disk.create(outside, "f0", io::FileType::kRegular, 0644, host->wall_time());
    host->disk.replace(file, random.bytes(50), host->wall_time());
    host->direct_alignment =
        std::array<std::uint32_t, 7>{0, 0, 512, 512, 4096, 4096, 16384}[random.below(7)];
    host->in_memory = host->direct_alignment == 0 && random.percent(50);
    host->has_locks = random.percent(92);
    host->has_aes = random.percent(80);
    host->refuses_state = random.percent(1);
  }
  const auto data_of = [](Host& host) -> Node& {
    return *host.disk.find(host.disk.find(Disk::kRoot)->entries.at("data"));
  };
  Node& source = source_.disk.create(data_of(source_), "source", io::FileType::kDirectory, 0755,
                                     source_.wall_time());
  make_directory(source, 0);
  source.attributes.mtime = old_time(random);
  const std::uint64_t target_state = random.below(3);
  if (target_state > 0) {
    Node& target = target_.disk.create(data_of(target_), "target", io::FileType::kDirectory, 0755,
                                       target_.wall_time());
    if (target_state > 1) make_old_target(source, target, 0);
  }
  if (target_.refuses_state) obstructed_ = true;
  leave_files_out();
  for (Host* host : {&source_, &target_}) {
    for (const std::uint64_t mount : {host->disk.device(), std::uint64_t{77}}) {
      host->disk.sync_mount(mount);
    }
  }
  ledger_.add_tree(target_.disk, kTargetRoot, true);
  ledger_.add_tree(source_.disk, kSourceRoot, false);
  ledger_.settle_types();
  markers_.begin(source_.disk, kSourceRoot, target_.disk, kTargetRoot);
}

}  // namespace fgsync::sim
