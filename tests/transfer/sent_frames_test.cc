#include "transfer/sent_frames.h"

#include <gtest/gtest.h>

namespace fgsync::transfer {
namespace {

constexpr std::uint32_t kChunk = 64 * 1024;
const SourceTree kNoTree;  // nothing here opens a file

class SentOnOneStream : public ::testing::Test {
 protected:
  // Chunk `number` of the file, counted from 1.
  WorkItem chunk(std::uint64_t number) const {
    WorkItem item;
    item.file = file_;
    item.offset = (number - 1) * kChunk;
    item.length = kChunk;
    return item;
  }
  void send(std::initializer_list<std::uint64_t> chunks) {
    for (const std::uint64_t number : chunks) sent_.mark_sent(sent_.add(chunk(number)));
  }
  void send_end() { sent_.mark_sent(sent_.add(WorkItem())); }
  std::vector<std::uint64_t> numbers(const SentFrames::Ended& ended) const {
    std::vector<std::uint64_t> numbers;
    for (const WorkItem& item : ended.lost) numbers.push_back(item.offset / kChunk + 1);
    return numbers;
  }
  using Numbers = std::vector<std::uint64_t>;

  const std::shared_ptr<OutgoingFile> file_ = std::make_shared<OutgoingFile>(
      7, kNoTree, 0, "name", storage::SourceIdentity{100 * kChunk, {}}, kChunk);
  SentFrames sent_;
};

TEST_F(SentOnOneStream, FramesAreNumberedFromOne) {
  EXPECT_EQ(sent_.add(chunk(1)), 1u);
  EXPECT_EQ(sent_.add(chunk(2)), 2u);
}

TEST_F(SentOnOneStream, WhatIsBehindTheCountIsLostInItsOrder) {
  send({1, 2, 3, 4});
  const auto ended = sent_.end(2);
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->confirmed, 2u);
  EXPECT_EQ(numbers(*ended), (Numbers{3, 4}));
  EXPECT_FALSE(ended->whole);
}

TEST_F(SentOnOneStream, WhatWasConfirmedBeforeIsForgotten) {
  send({1, 2, 3, 4});
  EXPECT_EQ(*sent_.confirm(0), 0u);
  EXPECT_EQ(*sent_.confirm(3), 3u);
  EXPECT_EQ(*sent_.confirm(3), 0u);
  EXPECT_EQ(*sent_.confirm(2), 0u);  // a count that is older
  const auto ended = sent_.end(3);
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->confirmed, 0u);
  EXPECT_EQ(numbers(*ended), (Numbers{4}));
}

TEST_F(SentOnOneStream, OnlyWhatWasSentWholeIsSentAgain) {
  send({1});
  (void)sent_.add(chunk(2));  // the connection broke with it
  const auto ended = sent_.end(0);
  ASSERT_TRUE(ended.ok());
  ASSERT_EQ(ended->lost.size(), 2u);
  EXPECT_TRUE(ended->lost[0].again);
  EXPECT_FALSE(ended->lost[1].again);
}

TEST_F(SentOnOneStream, SentAgainStaysSentAgainWhenTheNextConnectionBreaksToo) {
  send({1});
  auto first = sent_.end(0);
  ASSERT_TRUE(first.ok());
  (void)sent_.add(std::move(first->lost[0]));
  const auto second = sent_.end(0);
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->lost[0].again);
}

TEST_F(SentOnOneStream, CountingGoesOnBehindWhatArrived) {
  send({1, 2, 3});
  ASSERT_TRUE(sent_.end(1).ok());
  EXPECT_EQ(sent_.add(chunk(2)), 2u);
  sent_.mark_sent(2);
  EXPECT_EQ(*sent_.confirm(2), 1u);
}

TEST_F(SentOnOneStream, TheStreamsEndIsAFrameAndNoPieceOfWork) {
  send({1, 2});
  send_end();
  const auto early = sent_.end(2);
  ASSERT_TRUE(early.ok());
  EXPECT_EQ(early->confirmed, 2u);
  EXPECT_TRUE(early->lost.empty());
  EXPECT_FALSE(early->whole);
  send_end();
  const auto ended = sent_.end(3);
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->confirmed, 0u);
  EXPECT_TRUE(ended->whole);
}

TEST_F(SentOnOneStream, ItsEndCountsAlsoWhenItWasConfirmedBefore) {
  send({1});
  send_end();
  EXPECT_EQ(*sent_.confirm(2), 1u);
  const auto ended = sent_.end(2);
  ASSERT_TRUE(ended.ok());
  EXPECT_TRUE(ended->whole);
}

TEST_F(SentOnOneStream, MoreFramesThanThereWereAreRefused) {
  EXPECT_EQ(sent_.confirm(1).status().code(), ErrorCode::kProtocolError);
  send({1, 2});
  EXPECT_EQ(sent_.confirm(3).status().code(), ErrorCode::kProtocolError);
  EXPECT_EQ(sent_.end(3).status().code(), ErrorCode::kProtocolError);
  EXPECT_EQ(sent_.end(UINT64_MAX).status().code(), ErrorCode::kProtocolError);
}

TEST_F(SentOnOneStream, FewerFramesThanWereConfirmedAreRefusedAtTheEnd) {
  send({1, 2});
  EXPECT_EQ(*sent_.confirm(2), 2u);
  EXPECT_EQ(sent_.end(1).status().code(), ErrorCode::kProtocolError);
}

TEST_F(SentOnOneStream, AFrameMayArriveBeforeItsSenderIsToldThatItHasGone) {
  const std::uint64_t first = sent_.add(chunk(1));
  EXPECT_EQ(*sent_.confirm(1), 0u);
  sent_.mark_sent(first);
  EXPECT_EQ(*sent_.confirm(1), 1u);
  // At the end nothing is on its way any more.
  (void)sent_.add(chunk(2));
  EXPECT_EQ(sent_.end(2).status().code(), ErrorCode::kProtocolError);
}

}  // namespace
}  // namespace fgsync::transfer
