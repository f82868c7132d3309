// Whole sessions whose data connections break: at each frame, before, behind and long after it.
#include <gtest/gtest.h>

#include "support/session_harness.h"
#include "support/temporary_directory.h"
#include "support/tree_listing.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes

class LostConnections : public ::testing::Test {
 protected:
  static constexpr std::size_t kChunk = 64 * 1024;

  LostConnections() {
    directory_.make_directory("source");
    directory_.write("source/large", contents_of(4 * kChunk + 17, 1));
    directory_.write("source/larger", contents_of(6 * kChunk, 2));
    for (int i = 0; i < 20; ++i) {
      directory_.write("source/small" + std::to_string(i), contents_of(50'000, 3 + unsigned(i)));
    }
    source_ = list_tree(directory_.path("source"));
  }

  LocalOutcome replicate(const Breakage& breakage) {
    SessionHarness harness(IoEngine::kPosix);
    harness.breakage = breakage;
    harness.parameters.streams = streams_;
    target_ = "target" + std::to_string(++runs_);
    return harness.replicate({directory_.path("source")}, directory_.path(target_));
  }
  void expect_replica(const LocalOutcome& outcome) {
    EXPECT_TRUE(outcome.is_clean()) << outcome.text();
    EXPECT_EQ(list_tree(directory_.path(target_)), source_);
    EXPECT_EQ(outcome.bytes.sent, outcome.bytes.total);
    EXPECT_EQ(outcome.files.sent, outcome.files.total);
  }
  // Breaks with the first frame, the second, and so on until a run has none of that number.
  void break_at_each_frame(Breakage breakage) {
    for (breakage.frame = 1;; ++breakage.frame) {
      SCOPED_TRACE("frame " + std::to_string(breakage.frame));
      const LocalOutcome outcome = replicate(breakage);
      expect_replica(outcome);
      if (outcome.connections_broken == 0) break;
      ASSERT_LT(breakage.frame, 100u);
    }
    EXPECT_GT(breakage.frame, 12u);
  }

  const TemporaryDirectory directory_;
  std::map<std::string, ListedEntry> source_;
  std::string target_;
  std::uint16_t streams_ = 2;
  int runs_ = 0;
};

TEST_F(LostConnections, AFrameThatDidNotArriveGoesAgain) {
  for (const bool sender_connects : {true, false}) {
    break_at_each_frame({.kind = Breakage::Kind::kBefore, .sender_connects = sender_connects});
  }
}

TEST_F(LostConnections, AFrameThatArrivedDoesNotGoAgain) {
  for (const bool sender_connects : {true, false}) {
    break_at_each_frame({.kind = Breakage::Kind::kAfter, .sender_connects = sender_connects});
  }
}

TEST_F(LostConnections, FramesThatWereTakenAndDidNotArriveGoAgain) {
  for (const bool sender_connects : {true, false}) {
    break_at_each_frame({.kind = Breakage::Kind::kSwallow, .sender_connects = sender_connects});
  }
}

TEST_F(LostConnections, TheOnlyStreamIsReplacedToo) {
  streams_ = 1;
  for (const auto kind :
       {Breakage::Kind::kBefore, Breakage::Kind::kAfter, Breakage::Kind::kSwallow}) {
    break_at_each_frame({.kind = kind});
  }
}

TEST_F(LostConnections, OneFrameToAConnectionIsEnough) {
  streams_ = 1;
  const LocalOutcome outcome =
      replicate({.kind = Breakage::Kind::kAfter, .frame = 1, .lasting = true});
  expect_replica(outcome);
  // A frame for each of 11 chunks and at least one pack take a connection each, the first of which
  // was there. The stream's end takes one more, unless the end of all data on the control
  // connection overtakes it.
  EXPECT_GE(outcome.connections_made_again, 11u);
}

TEST_F(LostConnections, TheRunGoesOnOverTheStreamsThatAreLeft) {
  // Enough for the other stream to be at it still when it comes to what the lost one had.
  directory_.write("source/largest", contents_of(200 * kChunk, 99));
  source_ = list_tree(directory_.path("source"));
  for (const bool sender_connects : {true, false}) {
    const LocalOutcome outcome = replicate({.kind = Breakage::Kind::kBefore,
                                            .frame = 1,
                                            .may_connect = false,
                                            .sender_connects = sender_connects});
    expect_replica(outcome);
    EXPECT_EQ(outcome.connections_broken, 1u);
    const auto& notes = sender_connects ? outcome.sender.notes : outcome.receiver.notes;
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].find("lost and could not be made again"), std::string::npos) << notes[0];
  }
}

TEST_F(LostConnections, WithoutAnyStreamTheSessionFails) {
  streams_ = 1;
  for (const bool sender_connects : {true, false}) {
    const LocalOutcome outcome = replicate({.kind = Breakage::Kind::kBefore,
                                            .frame = 2,
                                            .may_connect = false,
                                            .sender_connects = sender_connects});
    EXPECT_EQ(outcome.sender.status.code(), ErrorCode::kConnectionLost) << outcome.text();
    EXPECT_EQ(outcome.receiver.status.code(), ErrorCode::kConnectionLost) << outcome.text();
  }
}

}  // namespace
}  // namespace fgsync::transfer
