#include "wire/checksum.h"

#include <xxhash.h>
// Gives the same names to the functions that choose by the processor; after xxhash.h.
#ifdef FGSYNC_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>
#endif

#include "base/assert.h"

namespace fgsync::wire {
namespace {

Checksum canonical(XXH128_hash_t hash) {
  XXH128_canonical_t form;
  XXH128_canonicalFromHash(&form, hash);
  Checksum checksum;
  static_assert(sizeof form.digest == kChecksumBytes);
  for (std::size_t i = 0; i < kChecksumBytes; ++i) checksum.bytes[i] = std::byte(form.digest[i]);
  return checksum;
}

std::uint64_t load_big_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::uint64_t(byte);
  return value;
}

void store_big_endian(std::span<std::byte> out, std::uint64_t value) {
  for (std::size_t i = out.size(); i-- > 0; value >>= 8) out[i] = std::byte(value & 0xff);
}

}  // namespace

std::string Checksum::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[std::size_t(byte) >> 4];
    text += kDigits[std::size_t(byte) & 0xf];
  }
  return text;
}

Checksum checksum_of(std::span<const std::byte> bytes) {
  return canonical(XXH3_128bits(bytes.data(), bytes.size()));
}

// The library allocates its state: only it knows the size and alignment of the version that is
// linked.
struct ChecksumStream::State {
  State() : hash(XXH3_createState()) {
    FGSYNC_ASSERT(hash != nullptr);
    XXH3_128bits_reset(hash);
  }
  ~State() { XXH3_freeState(hash); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  XXH3_state_t* const hash;
};

ChecksumStream::ChecksumStream() : state_(std::make_unique<State>()) {}
ChecksumStream::~ChecksumStream() = default;
ChecksumStream::ChecksumStream(ChecksumStream&&) noexcept = default;
ChecksumStream& ChecksumStream::operator=(ChecksumStream&&) noexcept = default;

void ChecksumStream::update(std::span<const std::byte> bytes) {
  // The library calls an update without memory an error, even one of no bytes.
  if (bytes.empty()) return;
  const XXH_errorcode outcome = XXH3_128bits_update(state_->hash, bytes.data(), bytes.size());
  FGSYNC_ASSERT(outcome == XXH_OK);
}

Checksum ChecksumStream::finish() const { return canonical(XXH3_128bits_digest(state_->hash)); }

Checksum file_digest(std::span<const Checksum> chunks) {
  FGSYNC_ASSERT(!chunks.empty());
  if (chunks.size() == 1) return chunks.front();
  ChecksumStream stream;
  for (const Checksum& chunk : chunks) stream.update(chunk.bytes);
  return stream.finish();
}

void TreeDigest::add(const Checksum& entry) {
  const std::span<const std::byte, kChecksumBytes> bytes(entry.bytes);
  TreeDigest one;
  one.high_ = load_big_endian(bytes.first<8>());
  one.low_ = load_big_endian(bytes.last<8>());
  add(one);
}

void TreeDigest::add(const TreeDigest& other) {
  low_ += other.low_;
  const std::uint64_t carry = low_ < other.low_ ? 1 : 0;
  high_ += other.high_ + carry;
}

Checksum TreeDigest::value() const {
  Checksum checksum;
  const std::span<std::byte, kChecksumBytes> bytes(checksum.bytes);
  store_big_endian(bytes.first<8>(), high_);
  store_big_endian(bytes.last<8>(), low_);
  return checksum;
}

}  // namespace fgsync::wire
