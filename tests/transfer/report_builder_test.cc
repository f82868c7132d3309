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

}  // namespace
}  // namespace fgsync::transfer
