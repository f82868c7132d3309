#include "transfer/resources.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace fgsync::transfer {
namespace {

TEST(Resources, StreamsFitTheDescriptorsThereAre) {
  EXPECT_EQ(affordable_streams(0), 0);
  EXPECT_EQ(affordable_streams(33), 0);
  EXPECT_EQ(affordable_streams(34), 1);
  EXPECT_EQ(affordable_streams(64), 8);
  EXPECT_EQ(affordable_streams(1024), limits::kStreamsMax);
  EXPECT_EQ(affordable_streams(std::size_t(-1)), limits::kStreamsMax);
}

TEST(Resources, StreamsByThemselvesAreTwoForEachCoreFourToEight) {
  EXPECT_EQ(automatic_streams(1), 4);
  EXPECT_EQ(automatic_streams(3), 6);
  EXPECT_EQ(automatic_streams(128), 8);
}

TEST(Resources, WorkersAreNeverMoreThanCoresOrHalfTheStreams) {
  EXPECT_EQ(runtime_options(IoEngine::kPosix, 1, 16).workers, 1u);
  EXPECT_EQ(runtime_options(IoEngine::kPosix, 8, 2).workers, 2u);
  EXPECT_EQ(runtime_options(IoEngine::kPosix, 8, 64).workers, 4u);
  EXPECT_EQ(runtime_options(IoEngine::kPosix, 64, 128).workers, limits::kWorkersMax);
  EXPECT_EQ(runtime_options(IoEngine::kPosix, 5, 64).workers, 3u);
}

TEST(Resources, ThereAreSeveralBlockingThreadsEvenOnOneCore) {
  EXPECT_EQ(runtime_options(IoEngine::kPosix, 4, 1).blocking_threads, 4u);
  EXPECT_EQ(runtime_options(IoEngine::kPosix, 4, 3).blocking_threads, 6u);
  EXPECT_EQ(runtime_options(IoEngine::kPosix, 4, 100).blocking_threads,
            limits::kBlockingThreadsMax);
}

TEST(Resources, ChunksAreAsAskedForAndElseAQuarterOfASecondAtMost) {
  EXPECT_EQ(choose_chunk_bytes(0, 0), limits::kChunkBytesDefault);
  EXPECT_EQ(choose_chunk_bytes(128 * limits::kKiB, 1), 128 * limits::kKiB);
  EXPECT_EQ(choose_chunk_bytes(0, 1'000'000'000), limits::kChunkBytesDefault);
  EXPECT_EQ(choose_chunk_bytes(0, 1), limits::kChunkBytesMin);
  const std::uint64_t chosen = choose_chunk_bytes(0, 1'000'000);
  EXPECT_EQ(chosen, 249'856u);  // 61 pages: the last whole one below 250'000
  EXPECT_EQ(chosen % limits::kSlotAlignment, 0u);
}

}  // namespace
}  // namespace fgsync::transfer
