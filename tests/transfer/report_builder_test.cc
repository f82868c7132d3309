// The figures behind the last line, against the table of the manual.
#include "transfer/report_builder.h"

#include <gtest/gtest.h>

#include "fgsync/transfer.h"
#include "support/idle_session.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes

// Ten seconds over a network, two sides with four cores each, nothing of note.
TransferReport quiet() {
  TransferReport report;
  report.seconds = 10;
  report.transport = "tcp";
  report.files.sent = 10;
  report.bytes.sent = 10ull << 30;
  report.source_side.cores = report.target_side.cores = 4;
  report.source_side.cpu_seconds = report.target_side.cpu_seconds = 4;
  return report;
}

double& busy(SideFigures& side, Stage stage) {
  return side.stages[std::size_t(stage)].busy_seconds;
}

TEST(LimitedBy, TheStageThatTookLongestNamesIt) {
  TransferReport report = quiet();
  busy(report.source_side, Stage::kSend) = 8;
  busy(report.source_side, Stage::kRead) = 5;
  busy(report.target_side, Stage::kWrite) = 4;
  busy(report.target_side, Stage::kSync) = 3;
  EXPECT_EQ(limited_by(report, 0), "link");
  busy(report.source_side, Stage::kRead) = 9;
  EXPECT_EQ(limited_by(report, 0), "source disk");
  busy(report.target_side, Stage::kSync) = 6;  // 10 together with writing
  EXPECT_EQ(limited_by(report, 0), "target disk");
}

TEST(LimitedBy, ALocalRunHasNoLink) {
  TransferReport report = quiet();
  report.transport = "local";
  busy(report.source_side, Stage::kSend) = 30;
  busy(report.source_side, Stage::kRead) = 5;
  EXPECT_EQ(limited_by(report, 0), "source disk");
}

TEST(LimitedBy, ASideWithoutIdleCoresComesBeforeDisksAndLinks) {
  TransferReport report = quiet();
  busy(report.source_side, Stage::kSend) = 8;
  report.target_side.cpu_seconds = 33;  // of 40
  EXPECT_EQ(limited_by(report, 0), "target cpu");
  report.source_side.cpu_seconds = 36;
  EXPECT_EQ(limited_by(report, 0), "source cpu");
}

TEST(LimitedBy, ManySmallFilesComeBeforeCores) {
  TransferReport report = quiet();
  report.source_side.cpu_seconds = 39;
  report.files.sent = 100'000;
  report.bytes.sent = 100'000ull * 4096;
  EXPECT_EQ(limited_by(report, 0), "small files");
  report.bytes.sent = 100'000ull << 20;
  EXPECT_EQ(limited_by(report, 0), "source cpu");
}

TEST(LimitedBy, ALimitThatWasWaitedForComesFirst) {
  TransferReport report = quiet();
  report.files.sent = 100'000;
  EXPECT_EQ(limited_by(report, 5.1), "bwlimit");
  EXPECT_NE(limited_by(report, 4.9), "bwlimit");
}

TEST(LimitedBy, AnEmptyRunStillSaysSomething) {
  EXPECT_FALSE(limited_by(TransferReport(), 0).empty());
}

TEST(FillReport, ErrorsOfBothSidesAreListedAndCountedByKind) {
  IdleSession idle;
  idle.session->errors().add("here", Status(ErrorCode::kSourceChanged, "vanished"));
  idle.session->errors().note("both");
  idle.session->add_peer_error({"there", ErrorCode::kIoError, "bad block"});
  idle.session->add_peer_note("both");
  idle.session->add_peer_note("theirs");
  TransferReport report;
  fill_report(report, *idle.session, Role());
  EXPECT_TRUE(report.status.ok());
  ASSERT_EQ(report.errors.size(), 2u);
  EXPECT_EQ(report.errors_total, 2u);
  EXPECT_EQ(report.files.vanished, 1u);
  EXPECT_EQ(report.files.failed, 1u);
  EXPECT_EQ(report.notes, (std::vector<std::string>{"both", "theirs"}));
  EXPECT_EQ(exit_status_of(report), 23);
}

TEST(FillReport, TheSessionsFailureIsTheReports) {
  IdleSession idle;
  idle.session->fail(Status(ErrorCode::kTimeout, "no progress"));
  idle.session->fail(Status(ErrorCode::kIoError, "what came of it"));
  TransferReport report;
  fill_report(report, *idle.session, Role());
  EXPECT_EQ(report.status.code(), ErrorCode::kTimeout);
  EXPECT_TRUE(report.digest.empty());
}

// What a run's first session has done before its connection was lost, and what the second one did.
struct TwoSessions {
  TransferReport run;
  TransferReport second;
};
TwoSessions two_sessions() {
  TwoSessions both;
  both.run.transport = "tcp";
  both.run.notes = {"first", "both"};
  both.run.mapping = {"a -> b"};
  both.run.status = Status(ErrorCode::kConnectionLost, "reset");
  both.run.errors = {{"x", ErrorCode::kIoError, "of the first"}};
  both.run.errors_total = 1;
  both.run.files = {.total = 10, .sent = 3, .unchanged = 1};
  both.run.bytes = {.total = 1000, .sent = 300, .resumed = 50, .unchanged = 100, .wire = 500};
  busy(both.run.source_side, Stage::kRead) = 2;
  both.run.source_side.cpu_seconds = 5;
  both.second.mapping = {"a -> b"};
  both.second.notes = {"both", "second"};
  both.second.files = {.total = 10, .sent = 6, .unchanged = 4};
  both.second.bytes = {.total = 1000, .sent = 450, .resumed = 100, .unchanged = 450, .wire = 460};
  busy(both.second.source_side, Stage::kRead) = 1;
  both.second.source_side.cpu_seconds = 7;
  return both;
}

TEST(AddSession, TheFirstOnesFiguresAreTheRuns) {
  TwoSessions both = two_sessions();
  TransferReport run;
  run.transport = "tcp";
  run.notes = {"early"};
  add_session(run, std::move(both.second), /*found=*/std::nullopt);
  EXPECT_EQ(run.transport, "tcp");
  EXPECT_EQ(run.files.sent, 6u);
  EXPECT_EQ(run.bytes.unchanged, 450u);
  EXPECT_EQ(run.notes, (std::vector<std::string>{"early", "both", "second"}));
}

TEST(AddSession, WhatEarlierOnesSentIsNoLongerUnchanged) {
  TwoSessions both = two_sessions();
  add_session(both.run, std::move(both.second), FoundAtStart{.held = 80});
  const TransferReport& run = both.run;
  EXPECT_TRUE(run.status.ok());
  EXPECT_EQ(run.files.sent, 9u);
  EXPECT_EQ(run.files.unchanged, 1u);
  // 50 and 100 were found in parts, of which the run itself has brought 70.
  EXPECT_EQ(run.bytes.resumed, 80u);
  EXPECT_EQ(run.bytes.sent, 300u + 450u + 70u);
  EXPECT_EQ(run.bytes.unchanged, 100u);
  EXPECT_EQ(run.bytes.sent + run.bytes.resumed + run.bytes.unchanged, run.bytes.total);
  EXPECT_EQ(run.bytes.wire, 960u);
  EXPECT_EQ(busy(both.run.source_side, Stage::kRead), 3);
  EXPECT_EQ(run.source_side.cpu_seconds, 7);  // of the process, which has been the same
  EXPECT_EQ(run.notes, (std::vector<std::string>{"first", "both", "second"}));
  EXPECT_EQ(run.mapping.size(), 1u);
  EXPECT_TRUE(run.errors.empty());  // what still fails has failed again
  EXPECT_EQ(run.errors_total, 0u);
}

// The first session had planned all, and died with two files published that were not heard of.
TEST(AddSession, WhatWasNotThereAtTheStartHasBeenSent) {
  TwoSessions both = two_sessions();
  both.second.files = {.total = 10, .sent = 4, .unchanged = 6};
  both.second.bytes = {.total = 1000, .sent = 250, .resumed = 30, .unchanged = 720, .wire = 460};
  add_session(both.run, std::move(both.second),
              FoundAtStart{.is_complete = true, .files = 1, .bytes = 100, .held = 50});
  EXPECT_EQ(both.run.files.sent, 9u);
  EXPECT_EQ(both.run.files.unchanged, 1u);
  EXPECT_EQ(both.run.bytes.unchanged, 100u);
  EXPECT_EQ(both.run.bytes.resumed, 50u);
  EXPECT_EQ(both.run.bytes.sent, 850u);
}

}  // namespace
}  // namespace fgsync::transfer
