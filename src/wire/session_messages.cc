// Opening and keeping a session: hello, setup, source offer and target accept, heartbeat, ends of
// connections.
#include "base/assert.h"
#include "base/limits.h"
#include "wire/message_codec.h"

namespace fgsync::wire {
namespace {

constexpr std::size_t kStringBytesMin = 4;  // its length
constexpr std::size_t kIdentityBytes = 32;
constexpr std::size_t kSourceBytesMin = 2 * kStringBytesMin + 2 + 4;
constexpr std::size_t kAcceptedBytesMin = 2 * kStringBytesMin;

// A word for people. Printable ASCII only, so that it cannot work on a terminal.
std::string read_label(ByteReader& reader) {
  std::string label = reader.string(limits::kLabelBytesMax);
  const bool printable =
      std::ranges::all_of(label, [](char byte) { return ' ' <= byte && byte <= '~'; });
  reader.require(printable, "unprintable text");
  return label;
}

std::string read_path(ByteReader& reader) {
  std::string path = reader.string(limits::kPathArgumentBytesMax);
  reader.require(!has_nul(path), "NUL in a path");
  return path;
}

std::string read_pattern(ByteReader& reader) {
  std::string pattern = reader.string(limits::kPatternBytesMax);
  reader.require(!pattern.empty() && !has_nul(pattern), "pattern not allowed");
  return pattern;
}

void write_rule(ByteWriter& writer, const FilterRule& rule) {
  writer.boolean(rule.include);
  writer.string(rule.pattern);
}

FilterRule read_rule(ByteReader& reader) {
  const bool include = reader.boolean();
  return {include, read_pattern(reader)};
}

std::vector<FilterRule> read_rules(ByteReader& reader) {
  std::vector<FilterRule> rules =
      read_list(reader, limits::kFilterRulesMax, 1 + kStringBytesMin, read_rule);
  std::size_t bytes = 0;
  for (const FilterRule& rule : rules) bytes += rule.pattern.size();
  reader.require(bytes <= limits::kFilterBytesMax, "too many rules");
  return rules;
}

void write_selection(ByteWriter& writer, const Selection& selection) {
  write_list(writer, selection.rules, write_rule);
  writer.boolean(selection.rules_see_source_name);
  writer.boolean(selection.lists_paths);
  writer.boolean(selection.lists_whole_directories);
  writer.boolean(selection.copy_links);
  writer.boolean(selection.one_file_system);
  writer.u64(selection.bytes_min);
  writer.u64(selection.bytes_max);
  writer.boolean(selection.safe_links);
}

Selection read_selection(ByteReader& reader) {
  Selection selection;
  selection.rules = read_rules(reader);
  selection.rules_see_source_name = reader.boolean();
  selection.lists_paths = reader.boolean();
  selection.lists_whole_directories = reader.boolean();
  selection.copy_links = reader.boolean();
  selection.one_file_system = reader.boolean();
  selection.bytes_min = reader.u64();
  selection.bytes_max = reader.u64();
  selection.safe_links = reader.boolean();
  return selection;
}

void write_changes(ByteWriter& writer, const Changes& changes) {
  writer.u8(std::uint8_t(changes.comparison));
  writer.boolean(changes.update);
  writer.boolean(changes.existing_only);
  writer.boolean(changes.new_only);
}

Changes read_changes(ByteReader& reader) {
  Changes changes;
  changes.comparison = reader.enumerator(Comparison::kSizeAndTime, Comparison::kNothing);
  changes.update = reader.boolean();
  changes.existing_only = reader.boolean();
  changes.new_only = reader.boolean();
  return changes;
}

std::uint16_t read_streams(ByteReader& reader) {
  return std::uint16_t(
      reader.ranged(reader.u16(), 1, limits::kStreamsMax, "number of streams out of bounds"));
}

// A source's name where it lands: one component, or empty where its contents stand in the root
// themselves.
std::string read_optional_name(ByteReader& reader) {
  std::string name = reader.string(limits::kNameBytesMax);
  reader.require(name.empty() || is_valid_name(name), "name not allowed");
  return name;
}

void write_identity(ByteWriter& writer, const DirectoryIdentity& identity) {
  writer.bytes(identity.boot);
  writer.u64(identity.device);
  writer.u64(identity.inode);
}

DirectoryIdentity read_identity(ByteReader& reader) {
  DirectoryIdentity identity;
  std::ranges::copy(reader.bytes(identity.boot.size()), identity.boot.begin());
  identity.device = reader.u64();
  identity.inode = reader.u64();
  return identity;
}

void write_source(ByteWriter& writer, const SourceDescription& source) {
  writer.string(source.display);
  writer.string(source.base_name);
  writer.boolean(source.is_directory);
  writer.boolean(source.contents_only);
  write_list(writer, source.ancestry, write_identity);
}

SourceDescription read_source(ByteReader& reader) {
  SourceDescription source;
  source.display = read_path(reader);
  source.base_name = read_optional_name(reader);
  source.is_directory = reader.boolean();
  source.contents_only = reader.boolean();
  source.ancestry = read_list(reader, limits::kAncestryMax, kIdentityBytes, read_identity);
  return source;
}

}  // namespace

void write_body(ByteWriter& writer, const Hello& body) {
  writer.u16(body.version_min);
  writer.u16(body.version_max);
  writer.u64(body.features);
  writer.text(body.software, limits::kLabelBytesMax);
}

template <>
Hello read_body<Hello>(ByteReader& reader) {
  Hello body;
  body.version_min = reader.u16();
  body.version_max = reader.u16();
  reader.require(1 <= body.version_min && body.version_min <= body.version_max,
                 "empty range of versions");
  body.features = reader.u64();
  body.software = read_label(reader);
  return body;
}

void write_body(ByteWriter& writer, const Setup& body) {
  writer.u8(std::uint8_t(body.initiator));
  writer.boolean(body.dry_run);
  writer.boolean(body.compare);
  writer.boolean(body.make_parents);
  writer.boolean(body.has_aes);
  writer.boolean(body.read_back);
  writer.boolean(body.resume);
  writer.boolean(body.fail_if_locked);
  writer.boolean(body.publish_tree);
  writer.u8(std::uint8_t(body.durability));
  writer.u8(std::uint8_t(body.direct_io));
  writer.u8(std::uint8_t(body.cipher));
  writer.u16(body.streams);
  writer.u32(body.chunk_bytes);
  writer.u32(body.timeout_ms);
  writer.u64(body.bandwidth_limit);
  const auto write_text = [](ByteWriter& out, const std::string& text) { out.string(text); };
  write_list(writer, body.last, write_text);
  write_selection(writer, body.selection);
  write_changes(writer, body.changes);
  write_list(writer, body.sources, write_text);
  writer.string(body.target);
}

template <>
Setup read_body<Setup>(ByteReader& reader) {
  Setup body;
  body.initiator = reader.enumerator(Role::kSender, Role::kReceiver);
  body.dry_run = reader.boolean();
  body.compare = reader.boolean();
  reader.require(body.dry_run || !body.compare, "a comparison that is no dry run");
  body.make_parents = reader.boolean();
  body.has_aes = reader.boolean();
  body.read_back = reader.boolean();
  body.resume = reader.boolean();
  body.fail_if_locked = reader.boolean();
  body.publish_tree = reader.boolean();
  body.durability = reader.enumerator(Durability::kNone, Durability::kFull);
  body.direct_io = reader.enumerator(DirectIo::kAuto, DirectIo::kNever);
  body.cipher = reader.enumerator(Cipher::kAuto, Cipher::kNone);
  body.streams = read_streams(reader);
  body.chunk_bytes = std::uint32_t(reader.ranged(
      reader.u32(), limits::kChunkBytesMin, limits::kChunkBytesMax, "chunk size out of bounds"));
  reader.require(body.chunk_bytes % limits::kSlotAlignment == 0, "unaligned chunk size");
  body.timeout_ms = reader.u32();
  body.bandwidth_limit = reader.u64();
  body.last = read_list(reader, limits::kPatternsMax, kStringBytesMin, read_pattern);
  body.selection = read_selection(reader);
  body.changes = read_changes(reader);
  body.sources = read_list(reader, limits::kSourcesMax, kStringBytesMin, read_path);
  body.target = read_path(reader);
  const bool far_side_sends = body.initiator == Role::kReceiver;
  reader.require(far_side_sends == !body.sources.empty(), "sources for the wrong role");
  reader.require(!far_side_sends || body.target.empty(), "a target for the wrong role");
  return body;
}

void write_body(ByteWriter& writer, const SetupReply& body) {
  writer.u16(body.streams);
  writer.u8(std::uint8_t(body.cipher));
  writer.text(body.io_engine, limits::kLabelBytesMax);
}

template <>
SetupReply read_body<SetupReply>(ByteReader& reader) {
  SetupReply body;
  body.streams = read_streams(reader);
  body.cipher = reader.enumerator(Cipher::kAes128Gcm, Cipher::kNone);
  body.io_engine = read_label(reader);
  return body;
}

void write_body(ByteWriter& writer, const SourceOffer& body) {
  write_list(writer, body.sources, write_source);
}

template <>
SourceOffer read_body<SourceOffer>(ByteReader& reader) {
  SourceOffer body;
  body.sources = read_list(reader, limits::kSourcesMax, kSourceBytesMin, read_source);
  reader.require(!body.sources.empty(), "no sources");
  return body;
}

void write_body(ByteWriter& writer, const TargetAccept& body) {
  FGSYNC_ASSERT(body.names.size() == body.displays.size());
  writer.boolean(body.replica_of_contents);
  writer.u32(std::uint32_t(body.names.size()));
  for (std::size_t i = 0; i < body.names.size(); ++i) {
    writer.string(body.names[i]);
    writer.string(body.displays[i]);
  }
}

template <>
TargetAccept read_body<TargetAccept>(ByteReader& reader) {
  TargetAccept body;
  body.replica_of_contents = reader.boolean();
  const std::size_t count_max = body.replica_of_contents ? 1 : limits::kSourcesMax;
  const std::size_t count = reader.count(count_max, kAcceptedBytesMin);
  reader.require(count > 0, "no sources");
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    body.names.push_back(read_optional_name(reader));
    body.displays.push_back(read_path(reader));
    reader.require(body.names.back().empty() == body.replica_of_contents, "name not allowed");
  }
  return body;
}

void write_body(ByteWriter& writer, const ListedPaths& body) {
  FGSYNC_ASSERT(body.paths.size() <= limits::kListedBatchPaths);
  writer.boolean(body.more);
  write_list(writer, body.paths,
             [](ByteWriter& out, const std::string& path) { out.string(path); });
}

template <>
ListedPaths read_body<ListedPaths>(ByteReader& reader) {
  ListedPaths body;
  body.more = reader.boolean();
  body.paths = read_list(reader, limits::kListedBatchPaths, kStringBytesMin, read_path);
  return body;
}

void write_body(ByteWriter& writer, const DataEnd& body) {
  writer.u64(body.failed);
  writer.u64(body.changed);
}

template <>
DataEnd read_body<DataEnd>(ByteReader& reader) {
  DataEnd body;
  body.failed = reader.u64();
  body.changed = reader.u64();
  return body;
}

void write_body(ByteWriter& writer, const Heartbeat& body) {
  FGSYNC_ASSERT(body.frames.size() <= limits::kStreamsMax);
  writer.u64(body.progress);
  write_list(writer, body.frames, [](ByteWriter& out, std::uint64_t frames) { out.u64(frames); });
}

template <>
Heartbeat read_body<Heartbeat>(ByteReader& reader) {
  Heartbeat body;
  body.progress = reader.u64();
  body.frames = read_list(reader, limits::kStreamsMax, sizeof(std::uint64_t),
                          [](ByteReader& in) { return in.u64(); });
  return body;
}

void write_body(ByteWriter& writer, const StreamEnded& body) {
  writer.u16(body.stream);
  writer.u32(body.generation);
  writer.u64(body.frames);
}

template <>
StreamEnded read_body<StreamEnded>(ByteReader& reader) {
  StreamEnded body;
  body.stream = std::uint16_t(
      reader.ranged(reader.u16(), 0, limits::kStreamsMax - 1, "number of a stream out of bounds"));
  body.generation = reader.u32();
  body.frames = reader.u64();
  return body;
}

}  // namespace fgsync::wire
