// A data stream that breaks is rarely the reason: the peer gets a second to say what is.
#include <gtest/gtest.h>

#include "support/manual_session.h"
#include "transfer/watchdog.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes
using namespace std::chrono_literals;

class LostStream : public ::testing::Test {
 protected:
  LostStream() { watching_.spawn(manual_.io(), watchdog_.run()); }
  ~LostStream() override {
    watchdog_.stop();
    manual_.run_for(0ms);
  }

  Session& session() { return manual_.session; }
  void lose(const char* message) {
    session().stream_lost(Status(ErrorCode::kConnectionLost, message));
  }
  void abort_by_peer() {
    manual_.say(wire::Abort{ErrorEntry{"", ErrorCode::kNoSpace, "the disk is full"}});
  }

  ManualSession manual_;
  Watchdog watchdog_{manual_.session, [] { return Status(); }, [] { return false; }};
  io::TaskGroup watching_;
};

TEST_F(LostStream, ThePeersReasonWinsWithinASecond) {
  lose("a stream broke");
  manual_.run_for(900ms);
  EXPECT_TRUE(session().status().ok());
  abort_by_peer();
  EXPECT_EQ(session().status().code(), ErrorCode::kNoSpace);
  EXPECT_EQ(session().status().message(), "peer: the disk is full");
  manual_.run_for(5s);
  EXPECT_EQ(session().status().code(), ErrorCode::kNoSpace);
  EXPECT_FALSE(manual_.heard_last<wire::Abort>().has_value());  // it knows
}

TEST_F(LostStream, IsTheReasonWhenNoBetterOneComesInASecond) {
  lose("a stream broke");
  lose("another one broke as well");
  manual_.run_for(900ms);
  EXPECT_TRUE(session().status().ok());
  manual_.run_for(200ms);
  EXPECT_EQ(session().status().code(), ErrorCode::kConnectionLost);
  EXPECT_EQ(session().status().message(), "a stream broke");
  const auto told = manual_.heard_last<wire::Abort>();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->error.code, ErrorCode::kConnectionLost);
  abort_by_peer();
  EXPECT_EQ(session().status().code(), ErrorCode::kConnectionLost);
}

TEST_F(LostStream, IsTheReasonAtOnceWhenNothingMoreCanCome) {
  session().settle_lost_stream(/*at_once=*/true);
  EXPECT_TRUE(session().status().ok());
  lose("a stream broke");
  session().settle_lost_stream(/*at_once=*/true);
  EXPECT_EQ(session().status().code(), ErrorCode::kConnectionLost);
}

TEST_F(LostStream, WhatBreaksTheRulesIsAReasonByItself) {
  session().stream_lost(Status(ErrorCode::kProtocolError, "a damaged frame"));
  EXPECT_EQ(session().status().code(), ErrorCode::kProtocolError);
}

}  // namespace
}  // namespace fgsync::transfer
