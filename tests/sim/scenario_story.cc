// What a seed asks for: trees, plans, faults.
#include <algorithm>
#include <array>
#include <cerrno>

#include "scenario.h"
#include "storage/tree_walker.h"

namespace fgsync::sim {
namespace {

constexpr std::uint64_t kChunkBytes = 64 * 1024;
enum FaultKind : std::uint64_t { kDisk, kNetwork, kDeath, kSourceChange, kFaultKinds };

io::FileTime old_time(Random& random) {
  return {std::int64_t(1'600'000'000 + random.below(1000)),
          std::uint32_t(random.below(1'000'000'000))};
}

Bytes random_bytes(Random& random, std::uint64_t size) {
  Bytes bytes(size);
  random.fill(bytes);
  return bytes;
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
      return 256 * 1024 + random.below(kChunkBytes * 2);
    default:
      return random.skewed(20'000);
  }
}

void write_through(Disk& disk, Node& node, const Bytes& bytes, io::FileTime now) {
  disk.truncate(node, 0, now);
  disk.write(node, bytes, 0, now);
}

}  // namespace

// ---- Trees

void Scenario::make_file(Node& directory, std::uint64_t number) {
  Random& random = world_.random();
  // Files of one size are the likelier to be taken for each other.
  std::uint64_t size = choose_size(random);
  if (!sizes_used_.empty() && random.percent(30)) {
    size = sizes_used_[random.below(sizes_used_.size())];
  }
  const Bytes bytes = random_bytes(random, size);
  const std::uint32_t mode = random.percent(70) ? 0644 : std::uint32_t(random.below(07777));
  const io::FileTime time = old_time(random);
  const std::uint32_t uid = random.percent(80) ? 0 : 1000;
  if (file_count_ >= limits_.files_max) return;
  ++file_count_;
  sizes_used_.push_back(size);
  Node& file = source_.disk.create(directory, "f" + std::to_string(number), io::FileType::kRegular,
                                   mode, source_.wall_time());
  write_through(source_.disk, file, bytes, source_.wall_time());
  file.attributes = {mode, uid, uid, time};
  source_files_.push_back(file.inode);
}

void Scenario::make_directory(Node& directory, int depth) {
  Random& random = world_.random();
  const std::uint64_t files = random.skewed(depth == 0 ? 10 : 4);
  for (std::uint64_t i = 0; i < files; ++i) make_file(directory, i);
  if (random.percent(25)) {
    Node& link =
        source_.disk.create(directory, "link", io::FileType::kSymlink, 0777, source_.wall_time());
    link.link_target = random.percent(50) ? "f0" : "/outside/f0";
    link.attributes.mtime = old_time(random);
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
      write_through(disk, to, same ? *from.data : random_bytes(random, size), now);
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
    write_through(disk, own, random_bytes(random, 100), target_.wall_time());
  }
}

void Scenario::make_trees() {
  Random& random = world_.random();
  for (Host* host : {&source_, &target_}) {
    Node& root = *host->disk.find(Disk::kRoot);
    host->disk.create(root, "data", io::FileType::kDirectory, 0755, host->wall_time());
    Node& outside =
        host->disk.create(root, "outside", io::FileType::kDirectory, 0755, host->wall_time());
    Node& file = host->disk.create(outside, "f0", io::FileType::kRegular, 0644, host->wall_time());
    write_through(host->disk, file, random_bytes(random, 50), host->wall_time());
    host->direct_alignment = std::array<std::uint32_t, 3>{0, 512, 4096}[random.below(3)];
    host->has_locks = random.percent(92);
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
  for (Host* host : {&source_, &target_}) {
    for (const std::uint64_t mount : {host->disk.device(), std::uint64_t{77}}) {
      host->disk.sync_mount(mount);
    }
  }
  ledger_.add_tree(target_.disk, kTargetRoot, true);
  ledger_.add_tree(source_.disk, kSourceRoot, false);
  ledger_.settle_types();
}

// ---- Plans

void Scenario::choose_plan() {
  Random& random = world_.random();
  plan_.push = random.percent(60);
  plan_.streams = std::uint16_t(1 + random.below(3));
  plan_.workers = 1 + random.below(2);
  plan_.cipher = random.percent(75)
                     ? Cipher::kAes128Gcm
                     : (random.percent(50) ? Cipher::kChaCha20Poly1305 : Cipher::kNone);
  const bool direct = source_.direct_alignment != 0 && target_.direct_alignment != 0;
  plan_.direct_io = random.percent(direct ? 40 : 3) ? DirectIo::kAlways : DirectIo::kAuto;
  // Where it is not offered, large files are refused.
  if (!direct && plan_.direct_io == DirectIo::kAlways) obstructed_ = true;
  plan_.chunk_bytes = std::uint32_t(kChunkBytes * (1 + random.below(2)));
  plan_.timeout = std::chrono::milliseconds(random.percent(70) ? 20'000 : 5'000);
  plan_.bandwidth_limit = random.percent(12) ? 200'000 + random.below(2'000'000) : 0;
  plan_.source = kSourceRoot;
  plan_.target = kTargetRoot;
  wire_.latency = io::Duration(std::int64_t(20'000 + random.skewed(20'000'000)));
  // Most seeds are about one or two kinds of trouble, some about none.
  for (std::uint64_t kind = 0; kind < kFaultKinds; ++kind) {
    if (random.percent(45)) fault_kinds_ |= std::uint64_t{1} << kind;
  }
  has_left_state_ = (fault_kinds_ & ((1u << kDisk) | (1u << kDeath))) != 0;
}

bool Scenario::is_left_out() {
  const std::uint64_t number = faults_asked_++;
  return number < limits_.faults_skipped || number - limits_.faults_skipped >= limits_.faults_max;
}

void Scenario::plan_faults() {
  plan_.frames_until_flip = -1;
  const std::uint64_t count = fault_kinds_ == 0 ? 0 : world_.random().skewed(4);
  for (std::uint64_t i = 0; i < count; ++i) plan_one_fault();
}

void Scenario::plan_one_fault() {
  Random& random = world_.random();
  std::uint64_t kind = random.below(kFaultKinds);
  while (((fault_kinds_ >> kind) & 1) == 0) kind = (kind + 1) % kFaultKinds;
  switch (kind) {
    case kDisk:
      return plan_disk_fault(random.percent(30) ? source_ : target_);
    case kNetwork:
      return plan_network_fault();
    case kDeath:
      return plan_death();
    default:
      return plan_source_change();
  }
}

void Scenario::plan_disk_fault(Host& host) {
  Random& random = world_.random();
  DiskFault fault;
  fault.at = host.calls + 1 + random.skewed(250);
  switch (random.below(8)) {
    case 0:
      fault.kind = DiskFault::Kind::kFull;
      break;
    case 1:
      fault.kind = DiskFault::Kind::kSlow;
      break;
    case 2:
    case 3:
      fault.error = EIO;
      fault.calls = (1u << unsigned(FileCall::kSync)) | (1u << unsigned(FileCall::kSyncMount));
      break;
    default:
      fault.error = std::array{EIO, EIO, EIO, EIO, EIO, ENOSPC, EACCES, EPERM}[random.below(8)];
      if (random.percent(60)) fault.calls = 1u << random.below(kFileCallCount);
  }
  if (!is_left_out()) host.faults.push_back(fault);
}

void Scenario::plan_network_fault() {
  Random& random = world_.random();
  const std::uint64_t choice = random.below(5);
  const std::uint64_t at = random.skewed(80);
  const io::Duration time(std::int64_t(random.skewed(90) * 1'000'000'000));
  if (is_left_out()) return;
  if (choice == 4) {
    plan_.frames_until_flip = std::int64_t(at % 8);
    return;
  }
  wire_.plan({NetworkFault::Kind(choice), at, time});
}

void Scenario::plan_death() {
  Random& random = world_.random();
  Host& host = random.percent(30) ? source_ : target_;
  const bool power = random.percent(60);
  DiskFault fault;
  fault.kind = power ? DiskFault::Kind::kPowerCut : DiskFault::Kind::kKill;
  fault.at = host.calls + 1 + random.skewed(300);
  const std::uint64_t choice = random.below(5);
  const std::int64_t later = std::int64_t(random.skewed(2'000'000'000));
  if (is_left_out()) return;
  if (choice == 0) {
    // Where most is at stake: around renames.
    fault.calls = 1u << unsigned(FileCall::kRename);
    fault.at = host.calls + 1;
    host.faults.push_back(fault);
  } else if (choice == 4) {
    // Its user has had enough.
    const int run = runs_;
    world_.after(io::Duration(later), [this, run] {
      if (run == runs_ && !last_) cancel_run();
    });
  } else if (choice == 1) {
    // At any moment.
    const int run = runs_;
    world_.after(io::Duration(later), [this, &host, power, run] {
      if (run != runs_ || last_) return;
      power ? host.cut_power() : host.kill_all();
    });
  } else {
    host.faults.push_back(fault);
  }
}

// ---- A source that changes

void Scenario::plan_source_change() {
  Random& random = world_.random();
  const std::int64_t later = std::int64_t(random.skewed(200'000'000));
  const std::uint64_t steps = 1 + random.below(3);
  // Between two calls of the sender, where it matters most, or at any moment.
  const bool at_call = random.percent(60);
  const std::uint64_t call = 1 + random.skewed(100);
  if (is_left_out() || source_files_.empty()) return;
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

void Scenario::change_source() {
  if (last_) return;
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
  if (file == nullptr || file->parent == 0) return;
  const std::string path = disk.path_of(*file).substr(std::string(kSourceRoot).size() + 1);
  const std::uint64_t choice = random.below(6);
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
    write_through(disk, other, random_bytes(random, size), now);
    ledger_.source_changed(path, &other, world_.now());
    return;
  }
  if (choice == 1) {
    disk.truncate(*file, random.below(size + 1), now);
  } else if (choice == 2) {
    disk.write(*file, random_bytes(random, 1 + random.below(1000)), size, now);
  } else {
    // In place: between two steps of it the file is neither the old nor the new one, but what it
    // is at that moment.
    const std::uint64_t offset = random.below(size + 1);
    disk.write(*file, random_bytes(random, random.below(size - offset + 1)), offset, now);
  }
  ledger_.source_changed(path, file, world_.now());
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
