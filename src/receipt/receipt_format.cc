#include "receipt/receipt_format.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "wire/byte_reader.h"
#include "wire/byte_writer.h"
#include "wire/frame.h"

namespace fgsync::receipt {
namespace {

constexpr std::array<char, 8> kMagic = {'f', 'g', 's', 'y', 'n', 'c', '-', 'r'};
constexpr std::size_t kHeaderSpareBytes =
    kHeaderBytes - kMagic.size() - 2 - 8 - wire::kChecksumBytes;
constexpr std::uint32_t kNanosecondsMax = 999'999'999;
constexpr std::uint64_t kFileSizeMax = std::uint64_t(std::numeric_limits<std::int64_t>::max());

enum class Type : std::uint8_t { kFile = 1, kGone = 2, kSettled = 3 };

Status damaged(std::string_view what) { return Status(ErrorCode::kIoError, std::string(what)); }

void write_body(wire::ByteWriter& writer, const FileRecord& file) {
  writer.u8(std::uint8_t(Type::kFile));
  writer.u64(file.size);
  writer.i64(file.mtime.seconds);
  writer.u32(file.mtime.nanoseconds);
  writer.u32(file.chunk_bytes);
  writer.bytes(file.digest.bytes);
  writer.string(file.path);
}

void write_body(wire::ByteWriter& writer, const GoneRecord& gone) {
  writer.u8(std::uint8_t(Type::kGone));
  writer.string(gone.path);
}

void write_body(wire::ByteWriter& writer, const SettledRecord& settled) {
  writer.u8(std::uint8_t(Type::kSettled));
  writer.u64(settled.records);
  writer.u64(settled.live);
}

std::string read_path(wire::ByteReader& reader) {
  std::string path = reader.string(kPathBytesMax);
  reader.require(is_possible_path(path), "a path that leads nowhere");
  return path;
}

FileRecord read_file(wire::ByteReader& reader) {
  FileRecord file;
  file.size = reader.ranged(reader.u64(), 0, kFileSizeMax, "size out of bounds");
  file.mtime.seconds = reader.i64();
  file.mtime.nanoseconds =
      std::uint32_t(reader.ranged(reader.u32(), 0, kNanosecondsMax, "nanoseconds out of bounds"));
  file.chunk_bytes = std::uint32_t(reader.ranged(
      reader.u32(), limits::kChunkBytesMin, limits::kChunkBytesMax, "chunk size out of bounds"));
  reader.require(file.chunk_bytes % limits::kSlotAlignment == 0, "chunk size not aligned");
  file.digest = reader.checksum();
  file.path = read_path(reader);
  return file;
}

SettledRecord read_settled(wire::ByteReader& reader) {
  SettledRecord settled;
  settled.records = reader.u64();
  settled.live = reader.ranged(reader.u64(), 0, settled.records, "more live than all");
  return settled;
}

wire::Checksum bound_checksum(std::span<const std::byte> length_and_body, const Header& header,
                              std::uint64_t offset) {
  return wire::bind_checksum(wire::checksum_of(length_and_body), header.salt, offset);
}

// The length of the record that begins here, whole; 0 where none can begin.
std::size_t record_bytes(std::span<const std::byte> bytes) {
  if (bytes.size() < kRecordFixedBytes) return 0;
  const std::uint64_t body = wire::load_little_endian(bytes.first(kRecordLengthBytes));
  return body > 0 && body <= bytes.size() - kRecordFixedBytes ? body + kRecordFixedBytes : 0;
}

bool is_zero(std::byte byte) { return byte == std::byte{0}; }

}  // namespace

const std::string* path_of(const Record& record) {
  if (const auto* file = std::get_if<FileRecord>(&record)) return &file->path;
  if (const auto* gone = std::get_if<GoneRecord>(&record)) return &gone->path;
  return nullptr;
}

bool is_possible_path(std::string_view path) {
  if (path.size() > kPathBytesMax) return false;
  while (true) {
    const std::size_t slash = path.find('/');
    if (!io::is_single_component(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

std::vector<std::byte> encode(const Header& header) {
  wire::ByteWriter writer;
  writer.bytes(std::as_bytes(std::span(kMagic)));
  writer.u16(kFormatVersion);
  writer.bytes(std::array<std::byte, kHeaderSpareBytes>{});
  writer.u64(header.salt);
  writer.bytes(wire::checksum_of(writer.written()).bytes);
  return writer.take();
}

Result<Header> decode_header(std::span<const std::byte> bytes) {
  wire::ByteReader reader(bytes);
  if (bytes.size() != kHeaderBytes ||
      !std::ranges::equal(reader.bytes(kMagic.size()), std::as_bytes(std::span(kMagic)))) {
    return damaged("it is no receipt");
  }
  // Asked before the checksum, which another format may have elsewhere.
  if (const std::uint16_t version = reader.u16(); version != kFormatVersion) {
    return Status(ErrorCode::kUnsupported,
                  "it has format " + std::to_string(version) + ", which this version cannot read");
  }
  (void)reader.bytes(kHeaderSpareBytes);
  Header header;
  header.salt = reader.u64();
  const auto covered = bytes.first(kHeaderBytes - wire::kChecksumBytes);
  if (reader.checksum() != wire::checksum_of(covered)) return damaged("its header is damaged");
  return header;
}

std::size_t encode(const Record& record, const Header& header, std::uint64_t offset,
                   std::vector<std::byte>& out) {
  wire::ByteWriter body;
  std::visit([&body](const auto& value) { write_body(body, value); }, record);
  const std::size_t bytes = body.written().size() + kRecordFixedBytes;
  FGSYNC_ASSERT(bytes <= kRecordBytesMax);
  const std::size_t left = kBlockBytes - offset % kBlockBytes;
  const std::size_t padding = bytes <= left ? 0 : left;
  wire::ByteWriter whole;
  whole.u32(std::uint32_t(body.written().size()));
  whole.bytes(body.written());
  whole.bytes(bound_checksum(whole.written(), header, offset + padding).bytes);
  out.resize(out.size() + padding);
  out.insert(out.end(), whole.written().begin(), whole.written().end());
  return padding + bytes;
}

Result<Record> decode_record(std::span<const std::byte> bytes, const Header& header,
                             std::uint64_t offset) {
  const std::size_t length = record_bytes(bytes);
  if (length == 0) return damaged("a record is cut short");
  const auto covered = bytes.first(length - wire::kChecksumBytes);
  wire::ByteReader checksum(bytes.subspan(covered.size(), wire::kChecksumBytes));
  if (checksum.checksum() != bound_checksum(covered, header, offset)) {
    return damaged("a record is damaged");
  }
  wire::ByteReader reader(covered.subspan(kRecordLengthBytes));
  Record record;
  switch (reader.enumerator(Type::kFile, Type::kSettled)) {
    case Type::kFile:
      record = read_file(reader);
      break;
    case Type::kGone:
      record = GoneRecord{read_path(reader)};
      break;
    case Type::kSettled:
      record = read_settled(reader);
      break;
  }
  const Status whole = reader.finish("receipt record");
  if (!whole.ok()) return damaged(whole.message());
  return record;
}

std::optional<PlacedRecord> BlockCursor::next() {
  if (damaged_) return std::nullopt;
  Result<Record> record = decode_record(rest_, header_, offset_);
  if (!record.ok()) {
    // What is left of a block when the next record did not fit is zero.
    damaged_ = !std::ranges::all_of(rest_, is_zero);
    return std::nullopt;
  }
  const std::size_t bytes = record_bytes(rest_);
  PlacedRecord placed{offset_, std::move(*record)};
  rest_ = rest_.subspan(bytes);
  offset_ += bytes;
  return placed;
}

}  // namespace fgsync::receipt
