// What a run is asked to do: plain values, defaults as the manual states them. `tools/` fills them
// from the command line; the library checks them again where they matter.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fgsync/status.h"

namespace fgsync {

enum class IoEngine : std::uint8_t { kAuto, kUring, kPosix };
enum class DirectIo : std::uint8_t { kAuto, kAlways, kNever };
enum class Transport : std::uint8_t { kAuto, kTcp, kRdma };
enum class Cipher : std::uint8_t { kAuto, kAes128Gcm, kAes256Gcm, kChaCha20Poly1305, kNone };
// When what was replicated is on stable storage: never waited for; at the end, with one flush for
// many files; or file by file.
enum class Durability : std::uint8_t { kNone, kBatch, kFull };
enum class AddressFamily : std::uint8_t { kAny, kIpv4, kIpv6 };

// Where a tree is: on this host, or below a path of another one that is reached over ssh.
struct Location {
  std::string user;  // empty: whatever the remote shell chooses
  std::string host;  // empty: this host; an IPv6 literal stands here without its brackets
  std::string path;  // as typed, trailing slash included; remote and relative: below the home
  bool is_remote() const { return !host.empty(); }
  // As a person would type it again.
  std::string display() const;
};

// Reads one location by the rules of the manual: a colon counts only before the first slash, IPv6
// literals stand in brackets. kInvalidArgument with an advice for what looks like a mistake
// ("::1:/x"). `fgsync://` locations are kUnsupported in this version.
Result<Location> parse_location(const std::string& text);

// Ports that a started far side may listen on; 0..0 lets its kernel choose.
struct PortRange {
  std::uint16_t low = 0;
  std::uint16_t high = 0;
};

// One of rsync's rules about names: what matches its pattern is left out, or taken all the same.
struct FilterRule {
  bool include = false;
  std::string pattern;
  bool operator==(const FilterRule&) const = default;
};

// Which entries of the source belong to what is replicated.
//
// Sizes and symlinks are judged at the target: what is left out there counts as an entry of the
// source nevertheless.
struct Selection {
  std::vector<FilterRule> rules;  // the first that matches decides
  // The paths that they see begin with the source's own name, also where its contents are the
  // target's: TARGET was typed with a slash, as for rsync. replicate() sets it.
  bool rules_see_source_name = false;
  // Nothing is walked but the paths that a list names (TransferOptions::listed_paths), directories
  // among them with or without all that is below them.
  bool lists_paths = false;
  bool lists_whole_directories = false;
  bool copy_links = false;       // what a symlink leads to stands for it
  bool one_file_system = false;  // file systems that are mounted in the source are not entered
  // Files of other sizes are left as they stand at the target, or not.
  std::uint64_t bytes_min = 0;
  std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max();
  bool safe_links = false;  // so are symlinks that lead out of the tree
};

// A path that a list names, relative to the source: without what says nothing ("a//./b/../c" is
// "a/c"), empty for the source itself, with a slash at its end where what is in the directory is
// meant too. kInvalidArgument for one that leads out.
Result<std::string> parse_listed_path(std::string_view text);

// What a file at the target must have in common with the source's to count as the same.
enum class Comparison : std::uint8_t { kSizeAndTime, kSize, kContents, kNothing };

// What counts as changed.
struct Changes {
  Comparison comparison = Comparison::kSizeAndTime;
  bool update = false;         // files that are newer at the target stay
  bool existing_only = false;  // nothing new is made
  bool new_only = false;       // whatever is there stays, but directories
};

struct TransferOptions {
  std::vector<Location> sources;  // all on one host
  Location target;
  bool make_parents = false;  // --mkpath
  bool dry_run = false;
  // Nothing is replicated: contents are compared, and Observer::on_difference told.
  bool compare = false;
  bool report_changes = false;  // Observer::on_change is wanted
  Selection selection;
  std::vector<std::string> listed_paths;  // with selection.lists_paths; from parse_listed_path()
  Changes changes;

  // Landing.
  bool publish_tree = false;  // --publish=tree: the whole target switches at once
  Durability durability = Durability::kBatch;
  std::vector<std::string>
      last;                     // published after all else: rsync's patterns, besides our own list
  bool read_back = false;       // --verify=readback: what was written is read again and compared
  bool resume = true;           // what an interrupted run has left is used
  bool fail_if_locked = false;  // --lock: another run into the target is a failure, not a wait

  // The data plane.
  std::uint32_t streams = 0;          // data connections; 0: chosen from the cores
  std::uint64_t chunk_bytes = 0;      // 0: the default, 4 MiB
  std::uint64_t bandwidth_limit = 0;  // bytes per second over all streams; 0: none
  Transport transport = Transport::kAuto;
  IoEngine io_engine = IoEngine::kAuto;
  DirectIo direct_io = DirectIo::kAuto;
  Cipher cipher = Cipher::kAuto;

  // The network.
  std::string bind;           // address or interface of this host; empty: chosen by the route
  PortRange ports;            // where the started far side listens
  bool allow_public = false;  // addresses outside the private ranges may be used
  AddressFamily family = AddressFamily::kAny;
  std::vector<std::string> remote_shell = {"ssh"};  // argv in front of HOST
  std::string remote_fgsync = "fgsync";  // the far side's program, a remote shell's word(s)

  std::chrono::milliseconds timeout{300'000};         // without any progress
  std::chrono::milliseconds connect_timeout{15'000};  // from the remote shell's answer to a session
  std::chrono::milliseconds retry_for{60'000};  // a lost connection is tried again; 0: it is not
};

}  // namespace fgsync
