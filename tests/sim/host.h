// A host: a disk that outlives its processes, what may go wrong with it, and who runs on it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

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
};
inline constexpr std::size_t kFileCallCount = 15;

// Something that happens to the `at`-th file call from now on, or the first one after it that is of
// the right kind.
struct DiskFault {
  enum class Kind : std::uint8_t {
    kError,     // the one call fails with `error`
    kFull,      // from now on there is no space, until the fault is cleared
    kKill,      // the process that calls dies before the call
    kPowerCut,  // the whole host does
    kSlow,      // for a while every job takes long
    kChange,    // somebody else changes what is on the disk
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
  std::vector<Process*> processes;     // alive
  std::map<std::uint64_t, int> locks;  // inode -> descriptor, whose number is the host's
  std::uint32_t direct_alignment = 0;  // 0: no direct I/O
  bool has_locks = true;
  std::uint64_t calls = 0;
  std::vector<DiskFault> faults;
  bool full = false;
  io::TimePoint slow_until{};
  // After every change of a name or of a file's contents or attributes, with what it happened to.
  std::function<void(const Node& node)> on_change;
  std::function<void()> somebody_else;  // changes something (DiskFault::Kind::kChange)
  // After power cuts.
  std::function<void()> on_power_cut;
  int next_descriptor = 3;
  std::int64_t last_nanosecond = 0;
};

}  // namespace fgsync::sim
