// XXH3-128: the checksum of a chunk and the digests made of checksums. Not cryptographic: against
// an attacker the frame's seal is the integrity; this guards memory, disks and our own mistakes,
// end to end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace fgsync::wire {

inline constexpr std::size_t kChecksumBytes = 16;

// In XXH3's canonical (big-endian) form, the same on every host.
struct Checksum {
  std::array<std::byte, kChecksumBytes> bytes{};
  bool operator==(const Checksum&) const = default;
  std::string hex() const;
};

Checksum checksum_of(std::span<const std::byte> bytes);

// The same over several pieces, so that each is summed while it is in the cache. Move-only.
class ChecksumStream {
 public:
  ChecksumStream();
  ~ChecksumStream();
  ChecksumStream(ChecksumStream&&) noexcept;
  ChecksumStream& operator=(ChecksumStream&&) noexcept;
  void update(std::span<const std::byte> bytes);
  Checksum finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Digest of a file: the checksum of its only chunk (an empty file has one empty chunk), or, with
// several chunks, the checksum of their checksums in the order of their offsets.
Checksum file_digest(std::span<const Checksum> chunks);

// Digest of a tree: a sum (modulo 2^128) over its entries, so that neither order nor threads
// matter.
class TreeDigest {
 public:
  // `entry` is the checksum of the entry's own description.
  void add(const Checksum& entry);
  void add(const TreeDigest& other);
  Checksum value() const;

 private:
  std::uint64_t low_ = 0;
  std::uint64_t high_ = 0;
};

}  // namespace fgsync::wire
