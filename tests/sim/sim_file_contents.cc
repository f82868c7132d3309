// Reading, writing and syncing.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/assert.h"
#include "process.h"
#include "sim_file_system.h"

namespace fgsync::sim {
namespace {

Status failed(int error, const char* doing) { return Status::from_errno(error, doing); }

}  // namespace

// Never nothing, and of a direct transfer whole blocks.
std::size_t SimFileSystem::taken(const Open& open, std::size_t bytes) {
  Host& host = process_.host();
  if (host.world.now() >= host.short_until || host.world.random().percent(50)) return bytes;
  const std::size_t block = open.direct ? host.direct_alignment : 1;
  const std::size_t blocks = bytes / block;
  if (blocks < 2) return bytes;
  return block * (1 + host.world.random().below(blocks - 1));
}

std::int64_t SimFileSystem::read_at(int descriptor, std::span<std::byte> bytes,
                                    std::uint64_t offset) {
  if (const int error = enter(FileCall::kRead)) return -error;
  const Open& open = open_.at(descriptor);
  const Bytes& data = *node_of(descriptor)->data;
  if (offset >= data.size()) return 0;
  check_aligned(open, bytes, offset);
  const std::size_t count = std::min<std::size_t>(taken(open, bytes.size()), data.size() - offset);
  std::copy_n(data.begin() + std::ptrdiff_t(offset), count, bytes.begin());
  return std::int64_t(count);
}

std::int64_t SimFileSystem::write_at(int descriptor, std::span<const std::byte> bytes,
                                     std::uint64_t offset) {
  const Open& open = open_.at(descriptor);
  FGSYNC_ASSERT(open.writable);
  Host& host = process_.host();
  check_aligned(open, bytes, offset);
  const int error = enter(FileCall::kWrite);
  Node* const node = node_of(descriptor);
  if (error != 0) {
    // Part of it may have been taken before the failure.
    if (process_.alive() && node != nullptr && host.world.random().percent(50)) {
      const std::size_t part = host.world.random().below(bytes.size() + 1);
      host.disk.write(*node, bytes.first(part), offset, host.wall_time());
      changed(*node);
    }
    return -error;
  }
  const std::span<const std::byte> part = bytes.first(taken(open, bytes.size()));
  host.disk.write(*node, part, offset, host.wall_time());
  changed(*node);
  return std::int64_t(part.size());
}

void SimFileSystem::check_aligned(const Open& open, std::span<const std::byte> bytes,
                                  std::uint64_t offset) {
  if (!open.direct) return;
  Host& host = process_.host();
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const bool aligned = (offset | bytes.size() | address) % host.direct_alignment == 0;
  if (!aligned) host.world.violate("direct I/O that is not aligned");
}

std::int64_t SimFileSystem::read_some(const io::FileHandle& file, std::span<std::byte> bytes,
                                      std::uint64_t offset) {
  return read_at(file.descriptor(), bytes, offset);
}

std::int64_t SimFileSystem::write_some(const io::FileHandle& file, std::span<const std::byte> bytes,
                                       std::uint64_t offset) {
  return write_at(file.descriptor(), bytes, offset);
}

Status SimFileSystem::truncate(const io::FileHandle& file, std::uint64_t size) {
  if (const int error = enter(FileCall::kTruncate)) return failed(error, "truncating");
  Node& node = *node_of(file);
  process_.host().disk.truncate(node, size, process_.host().wall_time());
  changed(node);
  return Status();
}

Status SimFileSystem::allocate(const io::FileHandle& file, std::uint64_t size) {
  return truncate(file, size);
}

Status SimFileSystem::sync_data(const io::FileHandle& file) {
  return sync_node(file, [](Disk& disk, Node& node) { disk.sync_data(node); });
}

Status SimFileSystem::sync(const io::FileHandle& file) {
  return sync_node(file, [](Disk& disk, Node& node) { disk.sync(node); });
}

template <typename Sync>
Status SimFileSystem::sync_node(const io::FileHandle& file, Sync sync) {
  int error = enter(FileCall::kSync);
  if (!process_.alive()) return failed(EIO, "syncing");
  Host& host = process_.host();
  Node& node = *node_of(file);
  if (host.disk.tells_loss(node)) error = EIO;
  if (error != 0 || host.takes_loss()) host.disk.fail_sync(node);
  if (error != 0) return failed(error, "syncing");
  sync(host.disk, node);
  return Status();
}

Status SimFileSystem::sync_file_system(const io::FileHandle& any) {
  const int error = enter(FileCall::kSyncMount);
  if (!process_.alive()) return failed(EIO, "syncing");
  Host& host = process_.host();
  const std::uint64_t mount = node_of(any)->mount;
  const bool loses = host.takes_loss();
  if (error != 0 || loses) {
    host.disk.fail_sync_mount(mount, /*silently=*/error == 0, host.world.random());
  }
  // Each open file tells of it once, as syncfs does since Linux 5.8: here each process does.
  const auto failures = host.disk.failed_syncs().find(mount);
  const std::uint64_t now = failures == host.disk.failed_syncs().end() ? 0 : failures->second;
  const bool untold = std::exchange(told_[mount], now) != now;
  if (error != 0) return failed(error, "syncing");
  if (untold) return failed(EIO, "syncing");
  host.disk.sync_mount(mount);
  return Status();
}

Status SimFileSystem::drop_cached(const io::FileHandle& file) {
  if (const int error = enter(FileCall::kDropCached)) return failed(error, "dropping");
  process_.host().disk.drop_cached(*node_of(file));
  return Status();
}

bool SimFileSystem::is_in_memory(const io::FileHandle& /*file*/) {
  return process_.host().in_memory;
}

// A disk with room for anything, until it is full.
Result<io::FileSystemSpace> SimFileSystem::space(const io::FileHandle& /*any*/) {
  if (const int error = enter(FileCall::kSpace)) return failed(error, "asking for room");
  constexpr std::uint64_t kPlenty = std::uint64_t{1} << 40;
  const std::uint64_t left = process_.host().full ? 0 : kPlenty;
  return io::FileSystemSpace{kPlenty, left, 4096, kPlenty, left};
}

}  // namespace fgsync::sim
