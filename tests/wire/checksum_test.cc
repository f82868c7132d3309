#include "wire/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace fgsync::wire {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// 0, 1, ..., period - 1, 0, 1, ...
std::vector<std::byte> counting_bytes(std::size_t length, std::size_t period) {
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = std::byte(i % period);
  return bytes;
}

// The vectors were computed with `xxhsum -H2` 0.8.1, whose output is the canonical form.
TEST(Checksum, AgreesWithXxhsum) {
  EXPECT_EQ(checksum_of({}).hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(checksum_of(bytes_of("a")).hex(), "a96faf705af16834e6c632b61e964e1f");
  EXPECT_EQ(checksum_of(bytes_of("abc")).hex(), "06b05ab6733a618578af5f94892f3950");
  EXPECT_EQ(checksum_of(counting_bytes(256, 256)).hex(), "f1f8a93f50849ac39408a4433b952d71");
  EXPECT_EQ(checksum_of(counting_bytes((1 << 20) + 1, 251)).hex(),
            "3db0e7620b0d635947a84c196fd973df");
}

TEST(Checksum, HexIsTheBytesInOrder) {
  Checksum checksum;
  checksum.bytes[0] = std::byte{0x0f};
  checksum.bytes[15] = std::byte{0xa0};
  EXPECT_EQ(checksum.hex(), "0f0000000000000000000000000000a0");
}

TEST(ChecksumStream, PiecesGiveTheChecksumOfTheWhole) {
  const auto bytes = counting_bytes((1 << 20) + 1, 251);
  for (const std::size_t piece : {1u, 63u, 4096u, 65'537u, 1u << 20, 1u << 21}) {
    ChecksumStream stream;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      stream.update({});
      stream.update(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    }
    EXPECT_EQ(stream.finish().hex(), "3db0e7620b0d635947a84c196fd973df") << piece;
  }
}

TEST(ChecksumStream, NothingGivesTheChecksumOfNothing) {
  EXPECT_EQ(ChecksumStream().finish(), checksum_of({}));
}

TEST(ChecksumStream, MovesWithWhatItHasSeen) {
  ChecksumStream stream;
  stream.update(bytes_of("a"));
  ChecksumStream moved(std::move(stream));
  moved.update(bytes_of("bc"));
  ChecksumStream assigned;
  assigned = std::move(moved);
  EXPECT_EQ(assigned.finish(), checksum_of(bytes_of("abc")));
}

TEST(FileDigest, OfOneChunkIsItsChecksum) {
  const Checksum chunk = checksum_of(bytes_of("abc"));
  EXPECT_EQ(file_digest({&chunk, 1}), chunk);
}

TEST(FileDigest, OfSeveralChunksIsTheChecksumOfTheirChecksums) {
  const Checksum chunks[] = {checksum_of(bytes_of("a")), checksum_of(bytes_of("abc"))};
  // xxhsum -H2 over the 32 bytes of both vectors above.
  EXPECT_EQ(file_digest(chunks).hex(), "c14cabe9e34241398c533e1487e18620");
}

Checksum checksum_with(std::size_t index, int value) {
  Checksum checksum;
  checksum.bytes[index] = std::byte(value);
  return checksum;
}

TEST(TreeDigest, StartsAtZero) { EXPECT_EQ(TreeDigest().value(), Checksum()); }

TEST(TreeDigest, OfOneEntryIsTheEntry) {
  TreeDigest digest;
  digest.add(checksum_of(bytes_of("abc")));
  EXPECT_EQ(digest.value(), checksum_of(bytes_of("abc")));
}

TEST(TreeDigest, CarriesFromTheLowHalfToTheHighOne) {
  TreeDigest digest;
  Checksum low_half_full;
  for (std::size_t i = 8; i < 16; ++i) low_half_full.bytes[i] = std::byte{0xff};
  digest.add(low_half_full);
  digest.add(checksum_with(15, 1));
  EXPECT_EQ(digest.value(), checksum_with(7, 1));
}

TEST(TreeDigest, WrapsAroundAt128Bits) {
  TreeDigest digest;
  Checksum all_ones;
  all_ones.bytes.fill(std::byte{0xff});
  digest.add(all_ones);
  digest.add(checksum_with(15, 3));
  EXPECT_EQ(digest.value(), checksum_with(15, 2));
}

TEST(TreeDigest, NeitherOrderNorGroupingMatters) {
  const Checksum a = checksum_of(bytes_of("a"));
  const Checksum b = checksum_of(bytes_of("b"));
  const Checksum c = checksum_of(bytes_of("c"));
  TreeDigest forwards;
  for (const Checksum& entry : {a, b, c}) forwards.add(entry);
  TreeDigest first;
  first.add(c);
  TreeDigest second;
  second.add(b);
  second.add(a);
  first.add(second);
  EXPECT_EQ(forwards.value(), first.value());
  EXPECT_NE(forwards.value(), second.value());
}

}  // namespace
}  // namespace fgsync::wire
