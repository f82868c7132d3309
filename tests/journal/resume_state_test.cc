#include "journal/resume_state.h"

#include <gtest/gtest.h>

#include "journal/record_samples.h"

namespace fgsync::journal {
namespace {

wire::Checksum checksum(int value) {
  wire::Checksum checksum;
  checksum.bytes.fill(std::byte(value));
  return checksum;
}

Begin begin_of(std::uint64_t number, const std::string& path) {
  Begin begin = sample_begin();
  begin.number = number;
  begin.path = path;
  return begin;
}

TEST(ResumeState, ChunksOfAFileAreFoundByItsPath) {
  ResumeState state;
  ASSERT_TRUE(state.apply(begin_of(3, "a")).ok());
  ASSERT_TRUE(state.apply(Chunks{3, 4, {checksum(4), checksum(5)}}).ok());
  ASSERT_TRUE(state.apply(Chunks{3, 1, {checksum(1)}}).ok());
  EXPECT_TRUE(state.contains(3));
  EXPECT_EQ(state.next_number(), 4u);
  EXPECT_FALSE(state.take("b").has_value());
  const auto file = state.take("a");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->number, 3u);
  EXPECT_EQ(file->version, sample_begin().version);
  EXPECT_EQ(file->held, (std::vector<bool>{false, true, false, false, true, true}));
  EXPECT_EQ(file->checksums[1], checksum(1));
  EXPECT_EQ(file->checksums[5], checksum(5));
  EXPECT_TRUE(state.empty());
  EXPECT_FALSE(state.take("a").has_value());
}

TEST(ResumeState, WhatIsDoneOrBegunAgainIsForgotten) {
  ResumeState state;
  ASSERT_TRUE(state.apply(begin_of(1, "a")).ok());
  ASSERT_TRUE(state.apply(Chunks{1, 0, {checksum(1)}}).ok());
  ASSERT_TRUE(state.apply(Done{1}).ok());
  EXPECT_TRUE(state.empty());
  ASSERT_TRUE(state.apply(begin_of(2, "a")).ok());
  ASSERT_TRUE(state.apply(Chunks{2, 0, {checksum(1)}}).ok());
  // The same number for another file, and another number for the same file.
  ASSERT_TRUE(state.apply(begin_of(2, "b")).ok());
  EXPECT_FALSE(state.take("a").has_value());
  ASSERT_TRUE(state.apply(begin_of(9, "b")).ok());
  EXPECT_FALSE(state.contains(2));
  const auto file = state.take("b");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->number, 9u);
  EXPECT_TRUE(file->held.empty());
  EXPECT_EQ(state.next_number(), 10u);
}

TEST(ResumeState, RecordsOutOfOrderAreRefusedAndChangeNothing) {
  ResumeState state;
  EXPECT_FALSE(state.apply(Chunks{1, 0, {checksum(1)}}).ok());
  EXPECT_TRUE(state.apply(Done{1}).ok());
  ASSERT_TRUE(state.apply(begin_of(1, "a")).ok());
  // The sample has 11 chunks.
  EXPECT_FALSE(state.apply(Chunks{1, 10, {checksum(1), checksum(2)}}).ok());
  EXPECT_TRUE(state.apply(Chunks{1, 10, {checksum(1)}}).ok());
  EXPECT_FALSE(state.apply(begin_of(UINT64_MAX, "b")).ok());
  EXPECT_EQ(state.take("a")->held.size(), 11u);
}

TEST(ResumeState, FilesUnderWayAreBounded) {
  ResumeState state;
  for (std::uint64_t i = 0; i < kPartialFilesMax; ++i) {
    ASSERT_TRUE(state.apply(begin_of(i, std::to_string(i))).ok());
  }
  EXPECT_FALSE(state.apply(begin_of(kPartialFilesMax, "one more")).ok());
  EXPECT_TRUE(state.apply(Done{0}).ok());
  EXPECT_TRUE(state.apply(begin_of(kPartialFilesMax, "one more")).ok());
}

TEST(ResumeState, ChunksAreBoundedOverAllFiles) {
  ResumeState state;
  Begin huge = begin_of(0, "a");
  huge.version.chunk_bytes = 1 << 20;
  huge.version.size = std::uint64_t{1} << 44;  // 2^24 chunks
  ASSERT_TRUE(state.apply(huge).ok());
  ASSERT_TRUE(state.apply(Chunks{0, kPartialChunksMax - 1, {checksum(1)}}).ok());
  ASSERT_TRUE(state.apply(begin_of(1, "b")).ok());
  EXPECT_FALSE(state.apply(Chunks{1, 0, {checksum(1)}}).ok());
  ASSERT_TRUE(state.apply(Done{0}).ok());
  EXPECT_TRUE(state.apply(Chunks{1, 0, {checksum(1)}}).ok());
}

}  // namespace
}  // namespace fgsync::journal
