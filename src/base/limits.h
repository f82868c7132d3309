// Every bound of the program in one place, with the relations between them checked by the compiler.
// A peer's value is compared with these before it is used; no peer can raise one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fgsync::limits {

inline constexpr std::size_t kKiB = std::size_t{1} << 10;
inline constexpr std::size_t kMiB = std::size_t{1} << 20;

// Chunks: the unit of scheduling, checksum and retry.
inline constexpr std::size_t kChunkBytesMin = 64 * kKiB;
inline constexpr std::size_t kChunkBytesDefault = 4 * kMiB;
inline constexpr std::size_t kChunkBytesMax = 16 * kMiB;

// Chunks of one file, so that a peer's (or a sparse file's) size does not decide how much memory
// its checksums take: 256 MiB. A file may have 64 TiB with the default chunk, 256 TiB with the
// largest.
inline constexpr std::uint64_t kFileChunksMax = std::uint64_t{1} << 24;

// Files up to this size travel packed, many to a frame. 256 KiB: at 25 Gbit/s such a file is 80 us
// of link time, which no longer dwarfs the cost of a frame (one read, one seal, one send) of its
// own.
inline constexpr std::size_t kPackedFileBytesMax = 256 * kKiB;
// A pack is closed at this many payload bytes or entries, whichever comes first.
inline constexpr std::size_t kPackBytesTarget = 1 * kMiB;
inline constexpr std::size_t kPackEntriesMax = 1024;
// A pack frame is never larger than this: its last file and all its entry headers go past the
// target. A buffer slot holds the larger of a chunk and such a frame.
inline constexpr std::size_t kPackFrameBytesMax = 2 * kMiB;

// Room behind the chunk in a buffer slot: the frame's trailer and the authentication tag, rounded
// up to a page so that slots stay aligned for direct I/O.
inline constexpr std::size_t kSlotSpareBytes = 4 * kKiB;
inline constexpr std::size_t kSlotAlignment = 4 * kKiB;
// All slots of a side together.
inline constexpr std::size_t kPoolBytesMax = 224 * kMiB;

inline constexpr std::size_t kStreamsMax = 64;
// Frames of one connection that were sent and are not known to have arrived. A receiver says once a
// second how many have; so many to a second would be 1 GiB of the smallest chunks. Beyond it the
// sender waits, so that a receiver that never says so does not fill its memory: 128 bytes each.
inline constexpr std::size_t kUnsettledFramesMax = 16 * 1024;
inline constexpr std::size_t kWorkersMax = 16;
inline constexpr std::size_t kBlockingThreadsMax = 8;

// Names and paths. A name is one component, as the kernel bounds it; a path is bounded so that a
// symlink's target (PATH_MAX) always fits a message.
inline constexpr std::size_t kNameBytesMax = 255;
inline constexpr std::size_t kSymlinkTargetBytesMax = 4096;
inline constexpr std::size_t kPathArgumentBytesMax = 64 * kKiB;
inline constexpr std::size_t kErrorTextBytesMax = 4 * kKiB;
inline constexpr std::size_t kSourcesMax = 4096;
// A source and its parents up to the root: PATH_MAX allows 2048 components, and so deep again may
// the directory be below which they are typed.
inline constexpr std::size_t kAncestryMax = 4096;
// Short words for people: the name of a program, of an engine, an address.
inline constexpr std::size_t kLabelBytesMax = 255;

// Control messages. One manifest batch is at most kManifestBatchEntries entries and stays under the
// message bound even when every name and symlink target is as long as allowed.
inline constexpr std::size_t kControlMessageBytesMax = 1 * kMiB;
inline constexpr std::size_t kManifestBatchEntries = 1024;
inline constexpr std::size_t kManifestBatchBytes = 512 * kKiB;
// Entries announced and not yet settled: bounds the memory of both sides whatever the tree's size.
inline constexpr std::size_t kEntriesOutstandingMax = 32 * 1024;

// Checksums of chunks that are there already, in one message: 512 KiB.
inline constexpr std::size_t kHeldChunksMax = 32 * 1024;
// Patterns given with --last.
inline constexpr std::size_t kPatternsMax = 256;
inline constexpr std::size_t kPatternBytesMax = 4 * kKiB;
// Rules about names, and the bytes of all their patterns: they go over in one message with other
// things, and what they are read into takes 40 bytes for each of theirs.
inline constexpr std::size_t kFilterRulesMax = 16 * 1024;
inline constexpr std::size_t kFilterBytesMax = 512 * kKiB;

// Paths that a list names, and their bytes: they take the memory of the side that walks.
inline constexpr std::size_t kListedPathsMax = std::size_t{2} << 20;
inline constexpr std::size_t kListedBytesMax = 64 * kMiB;
// In one message, which is closed when it has so many bytes of them or more.
inline constexpr std::size_t kListedBatchPaths = 16 * 1024;
inline constexpr std::size_t kListedBatchBytes = 512 * kKiB;

// What counts as progress for --timeout: so many bytes of contents read, sent, received, verified
// or written. An entry that is listed, planned or settled stands for a page. Anything less is what
// a peer could do for ever to keep a session that leads nowhere.
inline constexpr std::uint64_t kProgressBytesMin = 64 * kKiB;
inline constexpr std::uint64_t kProgressBytesPerEntry = 4 * kKiB;

// Errors kept with their text; more are only counted.
inline constexpr std::size_t kErrorsKeptMax = 10'000;
// Errors (a path and a message each) and notes in one control message.
inline constexpr std::size_t kErrorBatchEntries = 64;
inline constexpr std::size_t kNoteBatchEntries = 64;

// The line by which a started far side announces itself is looked for in at most this much noise.
inline constexpr std::size_t kStartNoiseBytesMax = 1 * kMiB;
// The request line and the answer line: an escaped refusal is up to three times kErrorTextBytesMax.
inline constexpr std::size_t kStartRequestBytesMax = 4 * kKiB;
inline constexpr std::size_t kStartAnswerBytesMax = 16 * kKiB;

static_assert(kPackedFileBytesMax <= kPackBytesTarget);
// Enough slots for one to be sent, one received, one read and one written even with the largest
// chunks.
static_assert(kPoolBytesMax / (kChunkBytesMax + kSlotSpareBytes) >= 4);
static_assert(kPackBytesTarget + kPackedFileBytesMax + kPackEntriesMax * 64 < kPackFrameBytesMax);
static_assert(kManifestBatchBytes + kSymlinkTargetBytesMax + kNameBytesMax + 256 <
              kControlMessageBytesMax);
static_assert(kErrorBatchEntries * (2 * kErrorTextBytesMax + 64) < kControlMessageBytesMax);
static_assert(kNoteBatchEntries * (kErrorTextBytesMax + 64) < kControlMessageBytesMax);
static_assert(kEntriesOutstandingMax * 16 < kControlMessageBytesMax);
static_assert(kHeldChunksMax * 16 + 64 < kControlMessageBytesMax);
static_assert(kListedBatchBytes + kPathArgumentBytesMax + kListedBatchPaths * 4 + 64 <
              kControlMessageBytesMax);
static_assert(kFilterBytesMax + kFilterRulesMax * 8 < kControlMessageBytesMax);
static_assert(3 * kErrorTextBytesMax + 1024 < kStartAnswerBytesMax);
static_assert(kChunkBytesMax % kSlotAlignment == 0 && kChunkBytesMin % kSlotAlignment == 0);

}  // namespace fgsync::limits
