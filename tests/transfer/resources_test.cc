#include "transfer/resources.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "fgsync/transfer.h"

namespace fgsync::transfer {
namespace {

TEST(Resources, StreamsFitTheDescriptorsThereAre) {
  EXPECT_EQ(affordable_streams(0), 0);
  EXPECT_EQ(affordable_streams(34), 0);
  EXPECT_EQ(affordable_streams(35), 1);
  EXPECT_EQ(affordable_streams(64), 6);
  EXPECT_EQ(affordable_streams(1024), limits::kStreamsMax);
  EXPECT_EQ(affordable_streams(std::size_t(-1)), limits::kStreamsMax);
}

TEST(Resources, TooFewDescriptorsAreAnUnusableSideThatSaysHowManyItNeeds) {
  const Status status = too_few_descriptors(34);
  EXPECT_EQ(exit_status_of(status.code()), 3);
  EXPECT_EQ(status.message(), "the limit of open files is 34, at least 35 are needed (ulimit -n)");
}

TEST(Resources, StreamsByThemselvesAreOneForEachCoreTwoToEight) {
  EXPECT_EQ(automatic_streams(1), 2);
  EXPECT_EQ(automatic_streams(3), 3);
  EXPECT_EQ(automatic_streams(128), 8);
}

TEST(Resources, WorkersAreNeverMoreThanCoresOrStreams) {
  EXPECT_EQ(runtime_options(IoEngine::kPosix, 1, 16).workers, 1u);
  EXPECT_EQ(runtime_options(IoEngine::kPosix, 8, 2).workers, 2u);
  EXPECT_EQ(runtime_options(IoEngine::kPosix, 8, 64).workers, 8u);
  EXPECT_EQ(runtime_options(IoEngine::kPosix, 64, 128).workers, limits::kWorkersMax);
  EXPECT_EQ(runtime_options(IoEngine::kPosix, 5, 64).workers, 5u);
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
