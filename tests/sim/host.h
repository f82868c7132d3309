// A host: a disk that outlives its processes, what may go wrong with it, and who runs on it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "disk.h"
#include "world.h"

namespace fgsync::sim {

// What a file call is, for faults.
enum class FileCall : std::uint8_t {
  kOpen,
  kCreate,
  kList,
  kStat,
  kRead,
  kWrite,
  kTruncate,
  kSync,
  kSyncMount,
  kMakeDirectory,
  kMakeSymlink,
  kRename,
  kRemove,
  kAttributes,
  kLock,
  kDropCached,
  kSpace,
};
inline constexpr std::size_t kFileCallCount = 17;

// Something that happens to the `at`-th file call from now on, or the first one after it that is of
// the right kind.
struct DiskFault {
  enum class Kind : std::uint8_t {
    kError,      // the one call fails with `error`
    kFull,       // from now on there is no space, until the fault is cleared
    kKill,       // the process that calls dies before the call
    kPowerCut,   // the whole host does
    kSlow,       // for a while every job takes long
    kShort,      // for a while reads and writes take less than asked for
    kRot,        // a bit flips in a file at rest
    kChange,     // somebody else changes what is on the disk
    kLostWrite,  // a sync reports success for pages that are not on the disk
  };
  Kind kind = Kind::kError;
  std::uint64_t at = 0;
  std::uint32_t calls = 0;  // a bit for each FileCall; 0: any
  int error = 0;
  bool matches(FileCall call) const { return calls == 0 || ((calls >> unsigned(call)) & 1) != 0; }
};

class Process;

struct Host {
  Host(World& the_world, std::string host_name, std::uint64_t device, std::string host_address)
      : world(the_world),
        name(std::move(host_name)),
        disk(device),
        address(std::move(host_address)) {}

  // Real time with nanoseconds; never twice the same, so that no change of a file can hide.
  io::FileTime wall_time();
  void kill_all();
  // Everything stops and what was not durable is left to chance.
  void cut_power();

  World& world;
  const std::string name;
  Disk disk;
  const std::string address;
  std::uint64_t boot = 1;
  std::vector<Process*> processes;     // alive and not finished
  std::map<std::uint64_t, int> locks;  // inode -> descriptor, whose number is the host's
  std::uint32_t direct_alignment = 0;  // 0: no direct I/O
  bool offers_direct_io() const {
    return direct_alignment != 0 && direct_alignment <= limits::kSlotAlignment;
  }
  bool in_memory = false;
  bool has_locks = true;
  bool has_links = true;
  bool has_exchange = true;
  bool refuses_state = false;  // a state directory may not be made
  bool has_aes = true;
  std::uint64_t calls = 0;
  std::vector<DiskFault> faults;
  bool full = false;
  bool loses_writes = false;     // at the next sync
  bool has_lost_writes = false;  // at any before
  bool takes_loss() {
    has_lost_writes |= loses_writes;
    return std::exchange(loses_writes, false);
  }
  io::TimePoint slow_until{};
  io::TimePoint short_until{};
  // After every change of a name or of a file's contents or attributes, with what it happened to.
  std::function<void(const Node& node)> on_change;
  // After a rename, beside on_change: what has the new name, and whether the process that gave it
  // holds the lock on a directory.
  std::function<void(const Node& node, const std::function<bool(std::uint64_t inode)>& holds_lock)>
      on_rename;
  std::function<void()> somebody_else;  // changes something (DiskFault::Kind::kChange)
  std::function<void()> on_rot;         // lets a bit flip (DiskFault::Kind::kRot)
  // After power cuts.
  std::function<void()> on_power_cut;
  int next_descriptor = 3;
  std::int64_t last_nanosecond = 0;
};

}  // namespace fgsync::sim
