#include "report_printer.h"

#include <gtest/gtest.h>

namespace fgsync::tools {
namespace {

TransferReport finished_report() {
  TransferReport report;
  report.seconds = 3.1;
  report.transport = "tcp";
  report.streams = 4;
  report.cipher = "aes128-gcm";
  report.limited_by = "source cpu";
  report.files.sent = 39;
  report.files.unchanged = 2;
  report.bytes.sent = 3'800'000'000;
  return report;
}

TEST(FinalLine, TellsWhatWasDoneAndWhatLimitedIt) {
  EXPECT_EQ(
      final_line(finished_report(), TransferOptions{}),
      "replicated 3.8 GB (39 files, 2 unchanged) in 3.1 s: 1.2 GB/s, 4 streams tcp aes128-gcm, "
      "limited by: source cpu");
}

TEST(FinalLine, OfALocalRunHasNoCipher) {
  TransferReport report = finished_report();
  report.transport = "local";
  report.cipher = "none";
  report.streams = 1;
  EXPECT_NE(final_line(report, TransferOptions{}).find(", 1 stream local, limited"),
            std::string::npos);
}

TEST(FinalLine, SaysThatAnUnencryptedWireIsOne) {
  TransferReport report = finished_report();
  report.cipher = "none";
  EXPECT_NE(final_line(report, TransferOptions{}).find("tcp unencrypted"), std::string::npos);
}

TEST(FinalLine, SaysThatNothingWasMadeDurable) {
  TransferOptions options;
  options.durability = Durability::kFull;
  EXPECT_EQ(final_line(finished_report(), options).find("durable"), std::string::npos);
  options.durability = Durability::kNone;
  EXPECT_NE(final_line(finished_report(), options).find(", not made durable, limited by"),
            std::string::npos);
}

TEST(FinalLine, NamesTheExitStatusOfWhatDidNotSucceed) {
  TransferReport report = finished_report();
  report.files.vanished = 1;
  report.exit_code = 24;
  EXPECT_NE(final_line(report, TransferOptions{}).find("1 vanished or changed"), std::string::npos);
  EXPECT_TRUE(final_line(report, TransferOptions{}).ends_with(", exit status 24"));
  report.status = Status(ErrorCode::kConnectionLost, "lost");
  report.exit_code = 10;
  const std::string line = final_line(report, TransferOptions{});
  EXPECT_TRUE(line.starts_with("ended early after 3.1 s: 3.8 GB (39 files")) << line;
  EXPECT_TRUE(line.ends_with(", exit status 10")) << line;
  report.files.sent = 0;
  report.bytes.sent = 0;
  EXPECT_EQ(final_line(report, TransferOptions{}),
            "ended early after 3.1 s: nothing replicated, exit status 10");
}

TEST(ErrorLines, AreOneLineEachWhateverTheName) {
  TransferReport report;
  report.errors = {{"a\nb\x1b", ErrorCode::kPermissionDenied, "opening: Permission denied"}};
  report.errors_total = 1;
  EXPECT_EQ(error_lines(report, 20),
            (std::vector<std::string>{"fgsync: a\\x0ab\\x1b: opening: Permission denied"}));
}

TEST(ErrorLines, AreAtMostTwentyAndThenACount) {
  TransferReport report;
  for (int i = 0; i < 25; ++i) {
    report.errors.push_back({std::to_string(i), ErrorCode::kIoError, "reading: why"});
  }
  report.errors_total = 1000;
  report.status = Status(ErrorCode::kCancelled, "cancelled");
  const std::vector<std::string> lines = error_lines(report, kErrorsShownMax);
  ASSERT_EQ(lines.size(), 22u);
  EXPECT_EQ(lines[19], "fgsync: 19: reading: why");
  EXPECT_EQ(lines[20], "fgsync: ... and 980 more");
  EXPECT_EQ(lines[21], "fgsync: cancelled");
}

TEST(DryRun, ListsTheMappingFirstThenPathsEscaped) {
  TransferReport report;
  report.mapping = {"a -> h:b"};
  EntryChange directory;
  directory.path = "d/";
  directory.kind = EntryKind::kDirectory;
  directory.differences = {EntryDifferences::kTime};
  EntryChange file;
  file.path = "d/x\ty";
  file.differences = {EntryDifferences::kNew};
  file.is_replicated = true;
  report.planned = {directory, file};
  CommandLine command;
  EXPECT_EQ(dry_run_lines(report, command),
            (std::vector<std::string>{"a -> h:b", "d/", "d/x\\x09y"}));
  command.output.itemize = true;
  command.transfer.target.host = "h";
  EXPECT_EQ(dry_run_lines(report, command),
            (std::vector<std::string>{"a -> h:b", ".d..t...... d/", "<f+++++++++ d/x\\x09y"}));
  TransferOptions options;
  options.dry_run = true;
  EXPECT_EQ(final_line(report, options), "dry run: 2 paths would be changed, nothing was");
}

TEST(Stats, TakeEachStageFromTheSideWhereItHappens) {
  TransferReport report = finished_report();
  const auto index = [](Stage stage) { return static_cast<std::size_t>(stage); };
  report.source_side.stages[index(Stage::kRead)] = {2.0, 4'000'000'000};
  report.target_side.stages[index(Stage::kRead)] = {9.0, 9};
  report.target_side.stages[index(Stage::kWrite)] = {4.0, 4'000'000'000};
  report.source_side.cores = 8;
  report.digest = "00ff";
  EXPECT_EQ(figures_of(report, Stage::kRead).busy_seconds, 2.0);
  EXPECT_EQ(figures_of(report, Stage::kWrite).busy_seconds, 4.0);
  const std::string table = stats_table(report);
  EXPECT_NE(table.find("source  read            2.000       4.0 GB       2.0 GB/s\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("target  write           4.000       4.0 GB       1.0 GB/s\n"),
            std::string::npos);
  EXPECT_NE(table.find("8 cores"), std::string::npos);
  EXPECT_NE(table.find("digest  00ff\n"), std::string::npos);
}

}  // namespace
}  // namespace fgsync::tools
