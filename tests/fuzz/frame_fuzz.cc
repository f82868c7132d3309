// A frame as it comes from a stream: 32 bytes of header, then its payload.
#include <algorithm>
#include <string_view>

#include "base/assert.h"
#include "base/limits.h"
#include "fuzz/fuzz_target.h"
#include "wire/frame.h"

namespace fgsync::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

void append(Bytes& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_packed(Bytes& out, const wire::PackedEntry& entry) {
  std::array<std::byte, wire::kPackedHeaderBytes> header;
  wire::encode_packed_header(entry, header);
  append(out, header);
  append(out, entry.bytes);
}

// Every entry of an accepted pack encodes to the bytes that it came from.
void check_pack(std::span<const std::byte> payload, std::uint32_t count) {
  wire::PackReader reader(payload, count);
  Bytes again;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto entry = reader.next();
    if (!entry.ok()) return;
    FGSYNC_ASSERT(entry->has_value());
    append_packed(again, **entry);
  }
  const auto end = reader.next();
  if (!end.ok()) return;
  FGSYNC_ASSERT(!end->has_value());
  FGSYNC_ASSERT(std::ranges::equal(again, payload));
}

Bytes sample_pack() {
  const auto contents = std::as_bytes(std::span(std::string_view("contents of a file")));
  Bytes bytes;
  append(bytes, wire::encode({wire::FrameType::kPack, 3, 0, 0}));
  append_packed(bytes, {1, wire::PackedStatus::kComplete, wire::checksum_of(contents), contents});
  append_packed(bytes, {2, wire::PackedStatus::kWithdrawn, {}, {}});
  append_packed(bytes, {3, wire::PackedStatus::kComplete, wire::checksum_of({}), {}});
  return bytes;
}

}  // namespace

std::vector<Bytes> valid_samples() {
  Bytes chunk;
  append(chunk, wire::encode({wire::FrameType::kChunk, 0, 42, 4 << 20}));
  chunk.resize(chunk.size() + 64 + wire::kChunkTrailerBytes);
  Bytes end;
  append(end, wire::encode({wire::FrameType::kStreamEnd, 0, 0, 0}));
  return {chunk, sample_pack(), end};
}

}  // namespace fgsync::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t length) {
  namespace wire = fgsync::wire;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(input, length));
  // The packs of any number of entries are worth a look even behind a broken header.
  fgsync::fuzz::check_pack(bytes, 2);
  if (length < wire::kFrameHeaderBytes) return 0;
  const auto header_bytes = bytes.first<wire::kFrameHeaderBytes>();
  const auto payload = bytes.subspan(wire::kFrameHeaderBytes);
  const auto header = wire::decode_frame_header(header_bytes);
  if (!header.ok()) return 0;
  FGSYNC_ASSERT(std::ranges::equal(wire::encode(*header), header_bytes));
  FGSYNC_ASSERT(header->count <= fgsync::limits::kPackEntriesMax);
  if (header->type == wire::FrameType::kPack) fgsync::fuzz::check_pack(payload, header->count);
  const auto chunk = wire::decode_chunk_payload(payload);
  if (chunk.ok()) {
    FGSYNC_ASSERT(!chunk->bytes.empty());
    FGSYNC_ASSERT(chunk->bytes.size() + wire::kChunkTrailerBytes == payload.size());
  }
  return 0;
}
