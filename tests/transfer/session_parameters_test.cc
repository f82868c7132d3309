// What follows from the parameters that both sides agree on: sizes, and the memory they need.
#include <gtest/gtest.h>

#include "transfer/session.h"

namespace fgsync::transfer {
namespace {

using limits::kKiB;
using limits::kMiB;

SessionParameters parameters_of(std::uint16_t streams, std::size_t chunk_bytes) {
  SessionParameters parameters;
  parameters.streams = streams;
  parameters.chunk_bytes = std::uint32_t(chunk_bytes);
  return parameters;
}

std::pair<std::size_t, std::size_t> pool_of(std::uint16_t streams, std::size_t chunk_bytes) {
  auto pool = make_buffer_pool(parameters_of(streams, chunk_bytes));
  EXPECT_TRUE(pool.ok()) << pool.status().message();
  if (!pool.ok()) return {};
  EXPECT_EQ((*pool)->region().size(), (*pool)->slot_count() * (*pool)->slot_bytes());
  return {(*pool)->slot_count(), (*pool)->slot_bytes()};
}

TEST(BufferNeed, IsTwoSlotsForEachStreamAndTwoToSpare) {
  EXPECT_EQ(pool_of(1, 4 * kMiB), std::pair(std::size_t{4}, 4 * kMiB + 4 * kKiB));
  EXPECT_EQ(pool_of(8, 4 * kMiB), std::pair(std::size_t{18}, 4 * kMiB + 4 * kKiB));
}

TEST(BufferNeed, ASlotHoldsAPackWhereChunksAreSmaller) {
  EXPECT_EQ(pool_of(8, 64 * kKiB), std::pair(std::size_t{18}, 2 * kMiB + 4 * kKiB));
}

TEST(BufferNeed, IsBoundedWhateverIsAskedFor) {
  // As many slots as go into 224 MiB.
  EXPECT_EQ(pool_of(64, 16 * kMiB), std::pair(std::size_t{13}, 16 * kMiB + 4 * kKiB));
  EXPECT_EQ(pool_of(64, 4 * kMiB), std::pair(std::size_t{55}, 4 * kMiB + 4 * kKiB));
  EXPECT_EQ(pool_of(64, 64 * kKiB), std::pair(std::size_t{111}, 2 * kMiB + 4 * kKiB));
}

TEST(SessionParameters, FilesUpToAChunkOrAQuarterOfAMegabyteTravelPacked) {
  EXPECT_EQ(parameters_of(1, 64 * kKiB).packed_file_bytes_max(), 64 * kKiB);
  EXPECT_EQ(parameters_of(1, 4 * kMiB).packed_file_bytes_max(), 256 * kKiB);
}

TEST(SessionParameters, AFileHasAtMostSixteenMillionChunks) {
  EXPECT_EQ(parameters_of(1, 4 * kMiB).file_bytes_max(), std::uint64_t{64} << 40);  // 64 TiB
}

}  // namespace
}  // namespace fgsync::transfer
