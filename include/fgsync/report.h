// What a run did: the figures behind the last line, --stats and --json.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "fgsync/status.h"

namespace fgsync {

// The stages a byte goes through. Busy time is summed over all workers, so it can exceed the run's
// time.
enum class Stage : std::uint8_t {
  kRead,     // from the source's files
  kHash,     // checksum at the source
  kEncrypt,  // sealing frames
  kSend,     // waiting in and for the socket
  kReceive,  // waiting for and reading from the socket
  kDecrypt,  // opening frames
  kVerify,   // checksum at the target
  kWrite,    // to the target's files, creation and renaming included
  kSync,     // making it durable
};
inline constexpr std::size_t kStageCount = 9;
const char* stage_name(Stage stage);

struct StageFigures {
  double busy_seconds = 0;
  std::uint64_t bytes = 0;
};

// One thing that went wrong with one path. `path` holds the raw bytes of the name and is escaped by
// whoever prints it; it is empty when the trouble belongs to the session.
struct ErrorEntry {
  std::string path;
  ErrorCode code = ErrorCode::kOk;
  std::string message;  // "what was being done: why"
};

// How a tree is not what it should be. The first six are numbers of the protocol: append behind
// kTime alone.
enum class DifferenceKind : std::uint8_t {
  kMissing = 1,   // it is not there
  kExtra = 2,     // it is there, and should not be
  kType = 3,      // something else stands there
  kSymlink = 4,   // it leads elsewhere
  kSize = 5,      // it is longer or shorter
  kContents = 6,  // its bytes are other ones
  kTime = 7,      // its modification time is another one
};
// "missing", "extra", ...
const char* difference_name(DifferenceKind kind);

struct Difference {
  DifferenceKind kind = DifferenceKind::kContents;
  std::string path;    // below the tree, raw bytes
  std::string detail;  // raw; "5 bytes instead of 7"; may be empty
};

enum class EntryKind : std::uint8_t { kFile, kDirectory, kSymlink };

// In what an entry differed at the target from the source's. The bits are numbers of the protocol.
struct EntryDifferences {
  std::uint16_t bits = 0;
  static constexpr std::uint16_t kNew = 1;  // there was nothing, or something of another kind
  static constexpr std::uint16_t kContents =
      2;  // or where a symlink leads; of files only if compared
  static constexpr std::uint16_t kSize = 4;
  static constexpr std::uint16_t kTime = 8;
  static constexpr std::uint16_t kMode = 16;
  static constexpr std::uint16_t kOwner = 32;
  static constexpr std::uint16_t kGroup = 64;
  static constexpr std::uint16_t kAll = 127;
  bool has(std::uint16_t bit) const { return (bits & bit) != 0; }
  void add(std::uint16_t bit) { bits = std::uint16_t(bits | bit); }
  bool operator==(const EntryDifferences&) const = default;
};

// An entry that a run changes at the target; a dry run would.
struct EntryChange {
  std::string
      path;  // below the target's root, raw bytes; directories end in a slash, the root is "./"
  EntryKind kind = EntryKind::kFile;
  std::string symlink_target;
  EntryDifferences differences;
  // Made or sent; else it is there, and what differs is brought in line.
  bool is_replicated = false;
};

struct FileFigures {
  std::uint64_t total = 0;      // regular files of the source that were looked at
  std::uint64_t sent = 0;       // replicated in this run
  std::uint64_t unchanged = 0;  // already there
  std::uint64_t linked = 0;
  std::uint64_t deleted = 0;
  std::uint64_t failed = 0;
  std::uint64_t vanished = 0;  // vanished or changed while being read
};

struct ByteFigures {
  std::uint64_t total = 0;
  std::uint64_t sent = 0;  // file contents that went over in this run
  std::uint64_t resumed = 0;
  std::uint64_t unchanged = 0;
  std::uint64_t wire = 0;  // everything on the data connections, frames' overhead included
};

// What one side spent: the ground of `limited by`.
struct SideFigures {
  std::array<StageFigures, kStageCount> stages{};
  double cpu_seconds = 0;   // user and system of the process
  std::uint32_t cores = 0;  // that the process may run on
  std::uint64_t peak_memory_bytes = 0;
};

struct TransferReport {
  Status status;  // why the session ended early; OK when it ran to its end
  int exit_code = 0;
  std::vector<std::string> mapping;  // "SOURCE -> TARGET" as resolved
  std::vector<EntryChange> planned;  // --dry-run: what would be changed
  std::chrono::system_clock::time_point started;
  double seconds = 0;
  std::string transport;  // tcp, local
  std::uint32_t streams = 0;
  std::string cipher;     // as on the command line; none for local runs
  std::string io_engine;  // of this side
  std::string limited_by;
  FileFigures files;
  ByteFigures bytes;
  std::string digest;  // of the tree, hexadecimal; empty when the run did not finish
  SideFigures source_side;
  SideFigures target_side;
  std::vector<ErrorEntry> errors;  // at most limits::kErrorsKeptMax
  std::uint64_t errors_total = 0;
  std::vector<std::string> notes;  // said once each: what was not kept, what was chosen and why

  double rate_bytes_per_second() const { return seconds > 0 ? double(bytes.sent) / seconds : 0; }
};

// The state of a running transfer, for a progress line.
struct ProgressSnapshot {
  double seconds = 0;             // since the start
  bool total_known = false;       // the walk has ended; before that the totals still grow
  std::uint64_t bytes_done = 0;   // settled at the target: sent and verified
  std::uint64_t bytes_total = 0;  // that must be sent: unchanged files are not in it
  std::uint64_t files_done = 0;   // settled: replicated, unchanged or failed
  std::uint64_t files_total = 0;
  std::uint32_t streams = 0;
};

}  // namespace fgsync
