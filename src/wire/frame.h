// Data frames: the header that every frame carries and the payloads behind it. Bytes in, values
// out; no I/O. docs/protocol.md is the specification. Everything decoded here may be hostile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fgsync/status.h"
#include "wire/checksum.h"

namespace fgsync::wire {

inline constexpr std::size_t kFrameHeaderBytes = 32;

enum class FrameType : std::uint8_t {
  kChunk = 1,      // part of one large file; payload: its bytes, then their checksum
  kPack = 2,       // many small files; payload: a sequence of packed entries
  kStreamEnd = 3,  // nothing follows on this stream; no payload
};

struct FrameHeader {
  FrameType type = FrameType::kChunk;
  std::uint32_t count = 0;   // kPack: packed entries, 1..limits::kPackEntriesMax; else 0
  std::uint64_t entry = 0;   // kChunk: the file; else 0
  std::uint64_t offset = 0;  // kChunk: where its bytes belong; else 0
};

std::array<std::byte, kFrameHeaderBytes> encode(const FrameHeader& header);
// kProtocolError for an unknown type, a count out of bounds, an offset that no file can have (above
// 2^63 - 1, chunk included), a field that must be 0 and is not.
Result<FrameHeader> decode_frame_header(std::span<const std::byte, kFrameHeaderBytes> bytes);

// A checksum travels bound to the place that its bytes belong to: XORed with the checksum of entry
// and offset. A frame whose header is damaged is then noticed before a byte of it is written, with
// --cipher=none too. Its own inverse.
Checksum bind_checksum(const Checksum& checksum, std::uint64_t entry, std::uint64_t offset);

// What a chunk's payload has behind its bytes: their checksum, bound.
inline constexpr std::size_t kChunkTrailerBytes = kChecksumBytes;

struct ChunkPayload {
  std::span<const std::byte> bytes;
  Checksum bound_checksum;
};
// Splits a chunk's payload; kProtocolError when it is too short or empty of bytes.
Result<ChunkPayload> decode_chunk_payload(std::span<const std::byte> payload);

enum class PackedStatus : std::uint8_t {
  kComplete = 1,   // the bytes follow
  kWithdrawn = 2,  // the source could not be read whole: nothing follows, the file is not published
};

struct PackedEntry {
  std::uint64_t entry = 0;
  PackedStatus status = PackedStatus::kComplete;
  Checksum checksum;                 // of bytes
  std::span<const std::byte> bytes;  // empty if withdrawn
};
inline constexpr std::size_t kPackedHeaderBytes = 32;

// Writes one packed entry's header into the first kPackedHeaderBytes of `out`; its bytes are put
// behind it by the caller, which reads the file straight to where it travels.
void encode_packed_header(const PackedEntry& entry, std::span<std::byte> out);

// Walks the entries of a pack. Every length is checked against what is there.
class PackReader {
 public:
  PackReader(std::span<const std::byte> payload, std::uint32_t count)
      : rest_(payload), remaining_(count) {}
  // The next entry; nullopt after the last one (and only if nothing is left over: else
  // kProtocolError).
  Result<std::optional<PackedEntry>> next();

 private:
  std::span<const std::byte> rest_;
  std::uint32_t remaining_;
};

}  // namespace fgsync::wire
