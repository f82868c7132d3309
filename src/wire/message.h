// Control messages: what the two sides of a session say to each other. Encoding and bounded
// decoding; no I/O. docs/protocol.md is the specification. Everything decoded here may be hostile:
// each count and length is compared with its limit (base/limits.h) before it is used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "fgsync/options.h"
#include "fgsync/report.h"
#include "fgsync/status.h"
#include "wire/checksum.h"

namespace fgsync::wire {

// Protocol versions that this build speaks.
inline constexpr std::uint16_t kVersionMin = 1;
inline constexpr std::uint16_t kVersionMax = 1;

// The first message of both sides. The highest version in both ranges is spoken from then on.
struct Hello {
  std::uint16_t version_min = kVersionMin;
  std::uint16_t version_max = kVersionMax;
  std::uint64_t features = 0;  // bits; a side uses what both have. None is defined in version 1
  std::string software;        // for messages to people only
};
// kVersionMismatch, naming both ranges, when they don't meet.
Result<std::uint16_t> negotiate_version(const Hello& ours, const Hello& theirs);

enum class Role : std::uint8_t { kSender = 1, kReceiver = 2 };

// From the side that was started by its user: what this session is.
struct Setup {
  Role initiator = Role::kSender;
  bool dry_run = false;
  bool compare = false;  // a dry run in which contents are compared
  bool make_parents = false;
  bool has_aes =
      false;  // this side's processor seals AES in hardware: `auto` takes AES where both have it
  bool read_back = false;
  bool resume = true;
  bool fail_if_locked = false;
  bool publish_tree = false;  // the whole target switches at once
  Durability durability = Durability::kBatch;
  DirectIo direct_io = DirectIo::kAuto;
  Cipher cipher = Cipher::kAuto;
  std::uint16_t streams = 1;      // 1..limits::kStreamsMax
  std::uint32_t chunk_bytes = 0;  // a multiple of limits::kSlotAlignment within its bounds
  std::uint32_t timeout_ms = 0;
  std::uint64_t bandwidth_limit = 0;
  std::vector<std::string> last;  // patterns of what is published after all else
  Selection selection;
  Changes changes;
  std::vector<std::string> sources;  // typed paths, if the far side is the sender; else empty
  std::string target;                // typed path, if the far side is the receiver; else empty
};

// The far side's answer.
struct SetupReply {
  std::uint16_t streams = 1;      // at most what was asked
  Cipher cipher = Cipher::kNone;  // the one to use; never weaker than asked
  std::string io_engine;
};

// Identity of a directory, so that a mapping of a tree into itself is noticed even when both sides
// are one host under two names. Equal only on one running kernel.
struct DirectoryIdentity {
  std::array<std::byte, 16> boot{};
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const DirectoryIdentity&) const = default;
};

// One SOURCE argument as its side resolved it.
struct SourceDescription {
  std::string display;    // the absolute path, for people
  std::string base_name;  // one component; empty for the root directory
  bool is_directory = false;
  bool contents_only = false;  // typed with a trailing slash (or as ".")
  // The source directory itself (or the file's), then its parents up to the root.
  std::vector<DirectoryIdentity> ancestry;
};

// Sender to receiver.
struct SourceOffer {
  std::vector<SourceDescription> sources;
};

// Receiver to sender: where each source lands, in the same order.
struct TargetAccept {
  // How the target's root is filled: the one source's contents stand directly in it, or each source
  // stands in it under the given name.
  bool replica_of_contents = false;
  std::vector<std::string> names;     // empty strings with replica_of_contents
  std::vector<std::string> displays;  // absolute paths, for people
};

enum class EntryType : std::uint8_t { kRegular = 1, kDirectory = 2, kSymlink = 3 };

// One file, directory or symlink of the manifest. There are no paths on the wire: an entry names
// its directory by number and itself by one component.
struct ManifestEntry {
  std::uint64_t id = 0;      // ascending; 0 is the target's root and has no name
  std::uint64_t parent = 0;  // an earlier directory entry, or 0
  EntryType type = EntryType::kRegular;
  std::uint32_t mode = 0;  // 07777
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int64_t mtime_seconds = 0;
  std::uint32_t mtime_nanoseconds = 0;
  std::uint64_t size = 0;  // regular files
  // With size and mtime: which version of which file this is. Whatever changes the contents moves
  // the ctime, even where the mtime is put back.
  std::int64_t ctime_seconds = 0;
  std::uint32_t ctime_nanoseconds = 0;
  std::uint64_t inode = 0;
  std::string name;            // never empty (but for id 0), ".", "..", ".fgsync", with "/" or NUL
  std::string symlink_target;  // symlinks
};

// The description that the tree's digest sums: everything above but the numbers, ctime and inode,
// and the content's digest (all zero where no content went over).
Checksum describe(const ManifestEntry& entry, const std::string& path, const Checksum& content);

// An entry takes this much in a batch, its name and its symlink target besides.
inline constexpr std::size_t kManifestEntryFixedBytes = 77;

// At most limits::kManifestBatchEntries, ids strictly ascending; whoever fills it closes it before
// it goes past limits::kManifestBatchBytes.
struct ManifestBatch {
  std::vector<ManifestEntry> entries;
};

// The walk is over.
struct ManifestEnd {
  std::uint64_t entries = 0;
  bool incomplete = false;  // something of the source could not be listed
};

enum class PlanAction : std::uint8_t {
  kSend = 1,        // the sender sends its contents
  kUnchanged = 2,   // already there
  kMade = 3,        // settled without contents: directory, symlink (dry run: would be)
  kKept = 4,        // directory or symlink that was already there
  kFailed = 5,      // cannot be replicated; an error about it is in the receiver's summary
  kPassedOver = 6,  // left as it stands at the target, or not, by what was asked
  kCompare = 7,     // no decision yet: there with the same size, the sender is to tell its digest
};

// Receiver's decision about a run of entries.
struct PlanDecision {
  std::uint64_t id = 0;
  PlanAction action = PlanAction::kSend;
  EntryDifferences differences = {};  // of what stands there; for people
};
// At most limits::kEntriesOutstandingMax.
struct PlanBatch {
  std::vector<PlanDecision> decisions;
};

// Receiver, before it asks for the file: these chunks of it, which follow each other, are there
// from an interrupted run, with these checksums. At most limits::kHeldChunksMax.
struct HeldChunks {
  std::uint64_t entry = 0;
  std::uint64_t first_chunk = 0;
  std::vector<Checksum> checksums;
};

// Sender: this large file has been read to its end. Files in packs need none. Also the answer to
// PlanAction::kCompare.
struct FileEnd {
  std::uint64_t entry = 0;
  bool complete = false;  // false: withdrawn, never publish it
  Checksum digest;        // of the file, if complete
};

// Receiver: these entries, which were to be sent, are settled.
struct EntrySettled {
  std::uint64_t id = 0;
  bool replicated = false;  // else failed
};
// At most limits::kEntriesOutstandingMax.
struct SettledBatch {
  std::vector<EntrySettled> entries;
};

// Figures of one side. The receiver's says that everything is settled, published and durable; the
// sender's, the last message of a session, that both digests agree.
struct Summary {
  SideFigures figures;
  FileFigures files;
  ByteFigures bytes;
  Checksum digest;  // of the tree, as this side saw it
  std::uint64_t errors_total = 0;
};
// Precedes the summary, as often as needed. At most limits::kErrorBatchEntries; paths and messages
// beyond limits::kErrorTextBytesMax are cut.
struct ErrorBatch {
  std::vector<ErrorEntry> errors;
};
// The same with limits::kNoteBatchEntries.
struct NoteBatch {
  std::vector<std::string> notes;
};

// About once a second: `progress` grows whenever this side got useful work done. A receiver also
// says how many frames of each stream have come whole so far, over all connections of the stream;
// from a sender the list is empty.
struct Heartbeat {
  std::uint64_t progress = 0;
  std::vector<std::uint64_t> frames;
};

// One connection of a stream carries nothing more. From a receiver: so many frames of the stream
// have come whole over it and those before it, and no more will. From a sender (0 frames): it has
// lost the connection, and waits for the receiver to say the same.
struct StreamEnded {
  std::uint16_t stream = 0;
  std::uint32_t generation = 0;
  std::uint64_t frames = 0;
};

// This side gives up; the session ends.
struct Abort {
  ErrorEntry error;
};

// Sender: every frame is on its way and every FileEnd has been said. What went wrong with its files
// until then decides whether markers are published.
struct DataEnd {
  std::uint64_t failed = 0;
  std::uint64_t changed = 0;  // vanished or changed while being read
};

// Receiver, comparing: what is not the same. At most limits::kErrorBatchEntries; paths and details
// beyond limits::kErrorTextBytesMax are cut. Kinds up to kContents.
struct DifferenceBatch {
  std::vector<Difference> differences;
};

// From an initiator that receives, after SetupReply: paths that its list names, below the source.
// At most limits::kListedBatchPaths; whoever fills it closes it at limits::kListedBatchBytes.
struct ListedPaths {
  std::vector<std::string> paths;
  bool more = false;  // another one follows
};

// The wire's type byte is one plus the position here: append, never reorder.
using Message =
    std::variant<Hello, Setup, SetupReply, SourceOffer, TargetAccept, ManifestBatch, ManifestEnd,
                 PlanBatch, FileEnd, SettledBatch, Summary, ErrorBatch, NoteBatch, Heartbeat, Abort,
                 DataEnd, HeldChunks, StreamEnded, DifferenceBatch, ListedPaths>;

// The caller keeps batches within their limits (asserted), and then the message is within
// limits::kControlMessageBytesMax. Setup, SourceOffer and TargetAccept alone can go past it, with
// thousands of long paths: the sender checks their size, so that its user is told instead of the
// peer.
std::vector<std::byte> encode(const Message& message);
// kProtocolError for anything that encode() would not have produced.
Result<Message> decode_message(std::span<const std::byte> bytes);

// "." and the like refused: the one place that says what a name from a peer may be.
bool is_valid_name(const std::string& name);

}  // namespace fgsync::wire
