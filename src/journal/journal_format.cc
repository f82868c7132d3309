#include "journal/journal_format.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "base/limits.h"
#include "wire/byte_reader.h"
#include "wire/byte_writer.h"

namespace fgsync::journal {
namespace {

constexpr std::array<char, 8> kMagic = {'f', 'g', 's', 'y', 'n', 'c', '-', 'j'};
constexpr std::size_t kHeaderSpareBytes = 6;
constexpr std::uint32_t kNanosecondsMax = 999'999'999;
constexpr std::uint64_t kFileSizeMax = std::uint64_t(std::numeric_limits<std::int64_t>::max());

enum class Type : std::uint8_t { kBegin = 1, kChunks = 2, kDone = 3 };

static_assert(limits::kPathArgumentBytesMax + 256 < kRecordBytesMax);
static_assert(limits::kHeldChunksMax * wire::kChecksumBytes + 64 < kRecordBytesMax);

Status damaged(std::string_view what) { return Status(ErrorCode::kIoError, std::string(what)); }

void write_time(wire::ByteWriter& writer, const io::FileTime& time) {
  writer.i64(time.seconds);
  writer.u32(time.nanoseconds);
}

io::FileTime read_time(wire::ByteReader& reader) {
  io::FileTime time;
  time.seconds = reader.i64();
  time.nanoseconds =
      std::uint32_t(reader.ranged(reader.u32(), 0, kNanosecondsMax, "nanoseconds out of bounds"));
  return time;
}

void write_body(wire::ByteWriter& writer, const Begin& begin) {
  writer.u8(std::uint8_t(Type::kBegin));
  writer.u64(begin.number);
  writer.u64(begin.version.size);
  write_time(writer, begin.version.mtime);
  write_time(writer, begin.version.ctime);
  writer.u64(begin.version.inode);
  writer.u32(begin.version.chunk_bytes);
  writer.bytes(begin.host);
  writer.u64(begin.staged_inode);
  writer.string(begin.path);
}

void write_body(wire::ByteWriter& writer, const Chunks& chunks) {
  FGSYNC_ASSERT(chunks.checksums.size() <= limits::kHeldChunksMax);
  writer.u8(std::uint8_t(Type::kChunks));
  writer.u64(chunks.number);
  writer.u64(chunks.first);
  writer.u32(std::uint32_t(chunks.checksums.size()));
  for (const wire::Checksum& checksum : chunks.checksums) writer.bytes(checksum.bytes);
}

void write_body(wire::ByteWriter& writer, const Done& done) {
  writer.u8(std::uint8_t(Type::kDone));
  writer.u64(done.number);
}

Begin read_begin(wire::ByteReader& reader) {
  Begin begin;
  begin.number = reader.u64();
  begin.version.size = reader.ranged(reader.u64(), 1, kFileSizeMax, "size out of bounds");
  begin.version.mtime = read_time(reader);
  begin.version.ctime = read_time(reader);
  begin.version.inode = reader.u64();
  begin.version.chunk_bytes = std::uint32_t(reader.ranged(
      reader.u32(), limits::kChunkBytesMin, limits::kChunkBytesMax, "chunk size out of bounds"));
  std::ranges::copy(reader.bytes(begin.host.size()), begin.host.begin());
  begin.staged_inode = reader.u64();
  begin.path = reader.string(limits::kPathArgumentBytesMax);
  reader.require(!begin.path.empty(), "no path");
  reader.require(!reader.ok() || begin.version.chunks() <= limits::kFileChunksMax,
                 "too many chunks");
  return begin;
}

Chunks read_chunks(wire::ByteReader& reader) {
  Chunks chunks;
  chunks.number = reader.u64();
  chunks.first = reader.ranged(reader.u64(), 0, limits::kFileChunksMax - 1, "chunk out of bounds");
  const std::size_t count = reader.count(limits::kHeldChunksMax, wire::kChecksumBytes);
  reader.require(count > 0, "no chunks");
  chunks.checksums.reserve(count);
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    chunks.checksums.push_back(reader.checksum());
  }
  return chunks;
}

wire::Checksum record_checksum(const Header& header, std::uint64_t offset,
                               std::span<const std::byte> length_and_body) {
  wire::ByteWriter place;
  place.bytes(header.salt);
  place.u64(offset);
  wire::ChecksumStream checksum;
  checksum.update(place.written());
  checksum.update(length_and_body);
  return checksum.finish();
}

}  // namespace

std::vector<std::byte> encode(const Header& header) {
  wire::ByteWriter writer;
  writer.bytes(std::as_bytes(std::span(kMagic)));
  writer.u16(kFormatVersion);
  writer.bytes(std::array<std::byte, kHeaderSpareBytes>{});
  writer.bytes(header.transfer.bytes);
  writer.bytes(header.salt);
  writer.bytes(wire::checksum_of(writer.written()).bytes);
  return writer.take();
}

Result<Header> decode_header(std::span<const std::byte> bytes) {
  wire::ByteReader reader(bytes);
  if (bytes.size() != kHeaderBytes ||
      !std::ranges::equal(reader.bytes(kMagic.size()), std::as_bytes(std::span(kMagic)))) {
    return damaged("it is no journal");
  }
  // Asked before the checksum, which a newer format may have elsewhere.
  if (const std::uint16_t version = reader.u16(); version != kFormatVersion) {
    return Status(ErrorCode::kUnsupported,
                  "it has format " + std::to_string(version) + ", which this version cannot read");
  }
  (void)reader.bytes(kHeaderSpareBytes);
  Header header;
  header.transfer = reader.checksum();
  std::ranges::copy(reader.bytes(header.salt.size()), header.salt.begin());
  const wire::Checksum expected =
      wire::checksum_of(bytes.first(kHeaderBytes - wire::kChecksumBytes));
  if (reader.checksum() != expected) return damaged("its header is damaged");
  return header;
}

void encode(const Record& record, const Header& header, std::uint64_t offset,
            std::vector<std::byte>& out) {
  wire::ByteWriter body;
  std::visit([&body](const auto& value) { write_body(body, value); }, record);
  FGSYNC_ASSERT(body.written().size() <= kRecordBytesMax);
  wire::ByteWriter whole;
  whole.u32(std::uint32_t(body.written().size()));
  whole.bytes(body.written());
  whole.bytes(record_checksum(header, offset, whole.written()).bytes);
  out.insert(out.end(), whole.written().begin(), whole.written().end());
}

std::size_t record_body_bytes(std::span<const std::byte> bytes) {
  const std::uint64_t length = wire::load_little_endian(bytes.first(kRecordLengthBytes));
  return length <= kRecordBytesMax ? length : 0;
}

Result<Record> decode_record(std::span<const std::byte> bytes, const Header& header,
                             std::uint64_t offset) {
  if (bytes.size() < kRecordFixedBytes ||
      bytes.size() != record_body_bytes(bytes) + kRecordFixedBytes) {
    return damaged("a record is cut short");
  }
  const auto covered = bytes.first(bytes.size() - wire::kChecksumBytes);
  wire::ByteReader checksum(bytes.last(wire::kChecksumBytes));
  if (checksum.checksum() != record_checksum(header, offset, covered)) {
    return damaged("a record is damaged");
  }
  wire::ByteReader reader(covered.subspan(kRecordLengthBytes));
  const Type type = reader.enumerator(Type::kBegin, Type::kDone);
  Record record;
  switch (type) {
    case Type::kBegin:
      record = read_begin(reader);
      break;
    case Type::kChunks:
      record = read_chunks(reader);
      break;
    case Type::kDone:
      record = Done{reader.u64()};
      break;
  }
  const Status whole = reader.finish("journal record");
  if (!whole.ok()) return damaged(whole.message());
  return record;
}

}  // namespace fgsync::journal
