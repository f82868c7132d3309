// What exists, what must move, and what became of it: manifest, plan, ends of files, settled
// entries; and the description of an entry that the tree's digest sums.
#include <limits>

#include "base/assert.h"
#include "base/limits.h"
#include "wire/message_codec.h"

namespace fgsync::wire {
namespace {

constexpr std::uint64_t kFileSizeMax = std::uint64_t(std::numeric_limits<std::int64_t>::max());
constexpr std::uint32_t kModeMax = 07777;
constexpr std::uint32_t kNanosecondsMax = 999'999'999;
constexpr std::size_t kDecisionBytes = 11;
constexpr std::size_t kSettledBytes = 9;

void write_metadata(ByteWriter& writer, const ManifestEntry& entry) {
  writer.u8(std::uint8_t(entry.type));
  writer.u32(entry.mode);
  writer.u32(entry.uid);
  writer.u32(entry.gid);
  writer.i64(entry.mtime_seconds);
  writer.u32(entry.mtime_nanoseconds);
  writer.u64(entry.size);
}

void write_entry(ByteWriter& writer, const ManifestEntry& entry) {
  writer.u64(entry.id);
  writer.u64(entry.parent);
  write_metadata(writer, entry);
  writer.i64(entry.ctime_seconds);
  writer.u32(entry.ctime_nanoseconds);
  writer.u64(entry.inode);
  writer.string(entry.name);
  writer.string(entry.symlink_target);
}

void check_place(ByteReader& reader, const ManifestEntry& entry) {
  if (entry.id == 0) {
    reader.require(entry.parent == 0, "the root has a parent");
    reader.require(entry.type == EntryType::kDirectory, "the root is no directory");
    reader.require(entry.name.empty(), "the root has a name");
    return;
  }
  reader.require(entry.parent < entry.id, "parent behind its entry");
  reader.require(is_valid_name(entry.name), "name not allowed");
}

ManifestEntry read_entry(ByteReader& reader) {
  ManifestEntry entry;
  entry.id = reader.u64();
  entry.parent = reader.u64();
  entry.type = reader.enumerator(EntryType::kRegular, EntryType::kSymlink);
  entry.mode = std::uint32_t(reader.ranged(reader.u32(), 0, kModeMax, "mode out of bounds"));
  entry.uid = reader.u32();
  entry.gid = reader.u32();
  entry.mtime_seconds = reader.i64();
  entry.mtime_nanoseconds =
      std::uint32_t(reader.ranged(reader.u32(), 0, kNanosecondsMax, "nanoseconds out of bounds"));
  entry.size = reader.u64();
  entry.ctime_seconds = reader.i64();
  entry.ctime_nanoseconds =
      std::uint32_t(reader.ranged(reader.u32(), 0, kNanosecondsMax, "nanoseconds out of bounds"));
  entry.inode = reader.u64();
  entry.name = reader.string(limits::kNameBytesMax);
  entry.symlink_target = reader.string(limits::kSymlinkTargetBytesMax);

  check_place(reader, entry);
  const bool is_regular = entry.type == EntryType::kRegular;
  const bool is_symlink = entry.type == EntryType::kSymlink;
  reader.ranged(entry.size, 0, is_regular ? kFileSizeMax : 0, "size out of bounds");
  reader.require(is_symlink == !entry.symlink_target.empty(), "symlink target out of place");
  reader.require(!has_nul(entry.symlink_target), "NUL in a symlink target");
  return entry;
}

}  // namespace

Checksum describe(const ManifestEntry& entry, const std::string& path, const Checksum& content) {
  ByteWriter writer;
  write_metadata(writer, entry);
  writer.string(path);
  writer.string(entry.symlink_target);
  writer.bytes(content.bytes);
  return checksum_of(writer.written());
}

void write_body(ByteWriter& writer, const ManifestBatch& body) {
  FGSYNC_ASSERT(body.entries.size() <= limits::kManifestBatchEntries);
  write_list(writer, body.entries, write_entry);
}

template <>
ManifestBatch read_body<ManifestBatch>(ByteReader& reader) {
  ManifestBatch body;
  body.entries =
      read_list(reader, limits::kManifestBatchEntries, kManifestEntryFixedBytes, read_entry);
  for (std::size_t i = 1; i < body.entries.size(); ++i) {
    reader.require(body.entries[i - 1].id < body.entries[i].id, "entries out of order");
  }
  return body;
}

void write_body(ByteWriter& writer, const ManifestEnd& body) {
  writer.u64(body.entries);
  writer.boolean(body.incomplete);
}

template <>
ManifestEnd read_body<ManifestEnd>(ByteReader& reader) {
  ManifestEnd body;
  body.entries = reader.u64();
  body.incomplete = reader.boolean();
  return body;
}

void write_body(ByteWriter& writer, const PlanBatch& body) {
  FGSYNC_ASSERT(body.decisions.size() <= limits::kEntriesOutstandingMax);
  write_list(writer, body.decisions, [](ByteWriter& out, const PlanDecision& decision) {
    out.u64(decision.id);
    out.u8(std::uint8_t(decision.action));
    out.u16(decision.differences.bits);
  });
}

template <>
PlanBatch read_body<PlanBatch>(ByteReader& reader) {
  const auto read_decision = [](ByteReader& in) {
    PlanDecision decision;
    decision.id = in.u64();
    decision.action = in.enumerator(PlanAction::kSend, PlanAction::kCompare);
    decision.differences.bits =
        std::uint16_t(in.ranged(in.u16(), 0, EntryDifferences::kAll, "unknown kind of difference"));
    return decision;
  };
  return PlanBatch{
      read_list(reader, limits::kEntriesOutstandingMax, kDecisionBytes, read_decision)};
}

void write_body(ByteWriter& writer, const FileEnd& body) {
  writer.u64(body.entry);
  writer.boolean(body.complete);
  writer.bytes(body.complete ? body.digest.bytes : Checksum().bytes);
}

template <>
FileEnd read_body<FileEnd>(ByteReader& reader) {
  FileEnd body;
  body.entry = reader.u64();
  body.complete = reader.boolean();
  body.digest = reader.checksum();
  reader.require(body.complete || body.digest == Checksum(), "digest of a withdrawn file");
  return body;
}

void write_body(ByteWriter& writer, const HeldChunks& body) {
  FGSYNC_ASSERT(body.checksums.size() <= limits::kHeldChunksMax);
  writer.u64(body.entry);
  writer.u64(body.first_chunk);
  write_list(writer, body.checksums,
             [](ByteWriter& out, const Checksum& checksum) { out.bytes(checksum.bytes); });
}

template <>
HeldChunks read_body<HeldChunks>(ByteReader& reader) {
  HeldChunks body;
  body.entry = reader.u64();
  body.first_chunk =
      reader.ranged(reader.u64(), 0, limits::kFileChunksMax - 1, "chunk out of bounds");
  body.checksums = read_list(reader, limits::kHeldChunksMax, sizeof(Checksum::bytes),
                             [](ByteReader& in) { return in.checksum(); });
  reader.require(!body.checksums.empty(), "no chunks");
  return body;
}

void write_body(ByteWriter& writer, const SettledBatch& body) {
  FGSYNC_ASSERT(body.entries.size() <= limits::kEntriesOutstandingMax);
  write_list(writer, body.entries, [](ByteWriter& out, const EntrySettled& settled) {
    out.u64(settled.id);
    out.boolean(settled.replicated);
  });
}

template <>
SettledBatch read_body<SettledBatch>(ByteReader& reader) {
  const auto read_settled = [](ByteReader& in) {
    EntrySettled settled;
    settled.id = in.u64();
    settled.replicated = in.boolean();
    return settled;
  };
  return SettledBatch{
      read_list(reader, limits::kEntriesOutstandingMax, kSettledBytes, read_settled)};
}

}  // namespace fgsync::wire
