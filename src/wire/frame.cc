#include "wire/frame.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "base/limits.h"
#include "wire/byte_reader.h"
#include "wire/byte_writer.h"

namespace fgsync::wire {
namespace {

// Offsets are file offsets of the kernel (off_t): the end of the chunk must be one too.
constexpr std::uint64_t kOffsetMax =
    std::uint64_t(std::numeric_limits<std::int64_t>::max()) - limits::kChunkBytesMax;

}  // namespace

std::array<std::byte, kFrameHeaderBytes> encode(const FrameHeader& header) {
  std::array<std::byte, kFrameHeaderBytes> out{};
  const std::span<std::byte, kFrameHeaderBytes> bytes(out);
  store_little_endian(bytes.subspan<0, 1>(), std::uint64_t(header.type));
  store_little_endian(bytes.subspan<4, 4>(), header.count);
  store_little_endian(bytes.subspan<8, 8>(), header.entry);
  store_little_endian(bytes.subspan<16, 8>(), header.offset);
  return out;
}

Result<FrameHeader> decode_frame_header(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  ByteReader reader(bytes);
  FrameHeader header;
  header.type = reader.enumerator(FrameType::kChunk, FrameType::kStreamEnd);
  const auto first_spare = reader.bytes(3);
  header.count = reader.u32();
  header.entry = reader.u64();
  header.offset = reader.u64();
  const auto second_spare = reader.bytes(8);

  const bool is_pack = header.type == FrameType::kPack;
  const bool is_chunk = header.type == FrameType::kChunk;
  reader.ranged(header.count, is_pack ? 1 : 0, is_pack ? limits::kPackEntriesMax : 0,
                "number of packed entries out of bounds");
  reader.require(is_chunk || header.entry == 0, "an entry where none belongs");
  reader.ranged(header.offset, 0, is_chunk ? kOffsetMax : 0, "offset out of bounds");
  reader.require(load_little_endian(first_spare) == 0 && load_little_endian(second_spare) == 0,
                 "spare bytes in use");
  FGSYNC_RETURN_IF_ERROR(reader.finish("frame header"));
  return header;
}

Checksum bind_checksum(const Checksum& checksum, std::uint64_t entry, std::uint64_t offset) {
  std::array<std::byte, 16> place{};
  const std::span<std::byte, 16> bytes(place);
  store_little_endian(bytes.subspan<0, 8>(), entry);
  store_little_endian(bytes.subspan<8, 8>(), offset);
  Checksum bound = checksum_of(place);
  for (std::size_t i = 0; i < kChecksumBytes; ++i) bound.bytes[i] ^= checksum.bytes[i];
  return bound;
}

Result<ChunkPayload> decode_chunk_payload(std::span<const std::byte> payload) {
  if (payload.size() <= kChunkTrailerBytes) {
    return Status(ErrorCode::kProtocolError, "malformed chunk: no bytes in it");
  }
  const std::size_t length = payload.size() - kChunkTrailerBytes;
  ByteReader trailer(payload.subspan(length));
  return ChunkPayload{payload.first(length), trailer.checksum()};
}

void encode_packed_header(const PackedEntry& entry, std::span<std::byte> out) {
  FGSYNC_ASSERT(out.size() >= kPackedHeaderBytes);
  FGSYNC_ASSERT(entry.bytes.size() <= limits::kPackedFileBytesMax);
  const bool is_complete = entry.status == PackedStatus::kComplete;
  const auto header = out.first<kPackedHeaderBytes>();
  std::ranges::fill(header, std::byte{0});
  store_little_endian(header.subspan<0, 8>(), entry.entry);
  store_little_endian(header.subspan<8, 1>(), std::uint64_t(entry.status));
  if (!is_complete) return;
  store_little_endian(header.subspan<12, 4>(), entry.bytes.size());
  std::ranges::copy(bind_checksum(entry.checksum, entry.entry, 0).bytes,
                    header.subspan<16>().begin());
}

Result<std::optional<PackedEntry>> PackReader::next() {
  ByteReader reader(rest_);
  if (remaining_ == 0) {
    FGSYNC_RETURN_IF_ERROR(reader.finish("pack"));
    return std::optional<PackedEntry>();
  }
  PackedEntry entry;
  entry.entry = reader.u64();
  entry.status = reader.enumerator(PackedStatus::kComplete, PackedStatus::kWithdrawn);
  const bool is_complete = entry.status == PackedStatus::kComplete;
  reader.require(load_little_endian(reader.bytes(3)) == 0, "spare bytes in use");
  const std::uint64_t length = reader.ranged(
      reader.u32(), 0, is_complete ? limits::kPackedFileBytesMax : 0, "length out of bounds");
  entry.checksum = reader.checksum();
  reader.require(is_complete || entry.checksum == Checksum(), "a checksum of nothing");
  if (is_complete) entry.checksum = bind_checksum(entry.checksum, entry.entry, 0);
  entry.bytes = reader.bytes(length);
  if (!reader.ok()) return reader.finish("packed entry");

  rest_ = rest_.subspan(kPackedHeaderBytes + length);
  --remaining_;
  return std::optional<PackedEntry>(entry);
}

}  // namespace fgsync::wire
