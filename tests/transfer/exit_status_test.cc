// Exit statuses against the table of the manual.
#include <gtest/gtest.h>

#include <string>

#include "fgsync/transfer.h"

namespace fgsync {
namespace {

TransferReport report_of(ErrorCode session, std::initializer_list<ErrorCode> entries) {
  TransferReport report;
  if (session != ErrorCode::kOk) report.status = Status(session, "why");
  for (ErrorCode code : entries) report.errors.push_back(ErrorEntry{"path", code, "why"});
  report.errors_total = report.errors.size();
  return report;
}

TEST(ExitStatus, EveryErrorCodeHasTheManualsStatus) {
  const std::pair<ErrorCode, int> table[] = {
      {ErrorCode::kOk, 0},
      {ErrorCode::kInvalidArgument, 1},
      {ErrorCode::kVersionMismatch, 2},
      {ErrorCode::kNotFound, 3},
      {ErrorCode::kPermissionDenied, 3},
      {ErrorCode::kUnusable, 3},
      {ErrorCode::kUnsupported, 4},
      {ErrorCode::kUnauthenticated, 5},
      {ErrorCode::kRefused, 5},
      {ErrorCode::kConnectionFailed, 10},
      {ErrorCode::kConnectionLost, 10},
      {ErrorCode::kNoSpace, 11},
      {ErrorCode::kIoError, 11},
      {ErrorCode::kChecksumMismatch, 12},
      {ErrorCode::kProtocolError, 12},
      {ErrorCode::kCancelled, 20},
      {ErrorCode::kSourceChanged, 24},
      {ErrorCode::kTimeout, 30},
      {ErrorCode::kConnectTimeout, 35},
      {ErrorCode::kRemoteShellFailed, 255},
      {ErrorCode::kLocked, 41},
  };
  for (const auto& [code, status] : table) EXPECT_EQ(exit_status_of(code), status);
}

TEST(ExitStatus, ACleanReportIsZero) {
  EXPECT_EQ(exit_status_of(report_of(ErrorCode::kOk, {})), 0);
}

TEST(ExitStatus, OnlyMovedSourcesAre24AndAnythingElseMakesIt23) {
  EXPECT_EQ(exit_status_of(report_of(ErrorCode::kOk, {ErrorCode::kSourceChanged})), 24);
  EXPECT_EQ(exit_status_of(report_of(ErrorCode::kOk,
                                     {ErrorCode::kSourceChanged, ErrorCode::kPermissionDenied})),
            23);
}

TEST(ExitStatus, AFileThatIsReadBackDifferentOutweighsAll) {
  for (ErrorCode session : {ErrorCode::kOk, ErrorCode::kProtocolError, ErrorCode::kNoSpace}) {
    EXPECT_EQ(
        exit_status_of(report_of(session, {ErrorCode::kIoError, ErrorCode::kChecksumMismatch})),
        40);
  }
}

TEST(ExitStatus, TheSessionsReasonComesBeforeSingleFiles) {
  for (ErrorCode session : {ErrorCode::kProtocolError, ErrorCode::kNoSpace, ErrorCode::kTimeout,
                            ErrorCode::kConnectionLost, ErrorCode::kCancelled}) {
    EXPECT_EQ(exit_status_of(report_of(session, {ErrorCode::kIoError})), exit_status_of(session));
  }
  EXPECT_EQ(exit_status_of(report_of(ErrorCode::kSourceChanged, {ErrorCode::kIoError})), 23);
}

TEST(ExitStatus, ErrorsThatWereOnlyCountedStillCount) {
  TransferReport report = report_of(ErrorCode::kOk, {ErrorCode::kSourceChanged});
  report.errors_total = 5;
  report.files.vanished = 1;
  EXPECT_EQ(exit_status_of(report), 24);
  report.files.failed = 4;
  EXPECT_EQ(exit_status_of(report), 23);
}

TEST(Names, StagesAndVersionAreFixed) {
  EXPECT_STREQ(stage_name(Stage::kRead), "read");
  EXPECT_STREQ(stage_name(Stage::kSync), "sync");
  EXPECT_STREQ(version_string(), "0.1.0");
}

}  // namespace
}  // namespace fgsync
