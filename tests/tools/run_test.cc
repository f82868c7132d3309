// What a run says and where, with a stand-in for the transfer itself.
#include "run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/temporary_directory.h"

namespace fgsync::tools {
namespace {

TransferReport succeed(const TransferOptions&, Observer& observer, CancelToken&) {
  observer.on_note("said at once");
  EntryChange file;
  file.path = "d/x\ny";
  file.differences = {EntryDifferences::kNew};
  file.is_replicated = true;
  observer.on_change(file);
  TransferReport report;
  report.notes = {"said at once", "said at the end"};
  report.mapping = {"a -> b"};
  EntryChange directory;
  directory.path = "d/";
  directory.kind = EntryKind::kDirectory;
  directory.differences = {EntryDifferences::kTime};
  report.planned = {directory};
  return report;
}

TransferReport never(const TransferOptions&, Observer&, CancelToken&) {
  ADD_FAILURE() << "it was not to be run";
  return TransferReport();
}

TransferReport lose_connection(const TransferOptions&, Observer&, CancelToken&) {
  TransferReport report;
  report.status = Status(ErrorCode::kConnectionFailed, "h: connecting: Connection refused");
  report.exit_code = 10;
  for (int i = 0; i < 30; ++i) report.errors.push_back({"p", ErrorCode::kIoError, "reading: why"});
  report.errors_total = 30;
  return report;
}

class Run : public ::testing::Test {
 protected:
  Run() {
    command_.transfer.sources = {*parse_location("a")};
    command_.transfer.target = *parse_location("b");
  }

  int run_with(Replicate replicate) {
    const int out = ::open(directory_.path("out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int status = run_into(out, replicate);
    ::close(out);
    return status;
  }

  int run_into(int standard_output, Replicate replicate) {
    const int err = ::open(directory_.path("err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    Console console(err);
    CancelToken cancel;
    const int status =
        run(command_, {"fgsync", "a", "b"}, replicate, standard_output, console, cancel);
    ::close(err);
    return status;
  }

  std::string out() { return directory_.read("out"); }
  std::string err() { return directory_.read("err"); }

  testing::TemporaryDirectory directory_;
  CommandLine command_;
};

TEST_F(Run, SaysEachNoteOnceAndEndsWithTheOutcome) {
  command_.notes = {"-z: the wire is not compressed"};
  EXPECT_EQ(run_with(succeed), 0);
  EXPECT_EQ(out(), "");
  EXPECT_EQ(err(),
            "fgsync: note: -z: the wire is not compressed\n"
            "fgsync: note: said at once\n"
            "fgsync: note: said at the end\n"
            "replicated 0 B (0 files) in 0.0 s: 0 B/s\n");
}

TEST_F(Run, QuietIsSilentOnSuccessAndNotOnFailure) {
  command_.output.quiet = true;
  command_.output.verbose = true;
  EXPECT_EQ(run_with(succeed), 0);
  EXPECT_EQ(err(), "");
  EXPECT_EQ(run_with(lose_connection), 10);
  EXPECT_NE(err().find("Connection refused"), std::string::npos);
}

TEST_F(Run, VerboseNamesEachPathEscaped) {
  command_.output.verbose = true;
  EXPECT_EQ(run_with(succeed), 0);
  EXPECT_NE(err().find("\nd/x\\x0ay\n"), std::string::npos);
}

TEST_F(Run, AFileThatSomebodyElseHasLockedEndsIt41WithAReport) {
  command_.lock_file = directory_.path("lock");
  command_.output.json = true;
  EXPECT_EQ(run_with(succeed), 0);
  EXPECT_TRUE(directory_.exists("lock"));
  const int other = ::open(command_.lock_file.c_str(), O_RDONLY);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_EQ(run_with(never), 41);
  EXPECT_NE(err().find("lock: another run holds the lock (pid "), std::string::npos) << err();
  EXPECT_EQ(nlohmann::json::parse(out())["errors"][0]["code"], "locked");
  command_.transfer.dry_run = true;
  EXPECT_EQ(run_with(succeed), 0);
  command_.transfer.dry_run = false;
  ::close(other);
  EXPECT_EQ(run_with(succeed), 0);
  command_.lock_file = directory_.path("none/lock");
  EXPECT_EQ(run_with(never), 3);
}

TEST_F(Run, DryRunListsOnStandardOutput) {
  command_.transfer.dry_run = true;
  EXPECT_EQ(run_with(succeed), 0);
  EXPECT_EQ(out(), "a -> b\nd/\n");
}

TEST_F(Run, ItemizedChangesGoToStandardOutput) {
  command_.output.itemize = true;
  command_.output.verbose = true;
  EXPECT_EQ(run_with(succeed), 0);
  EXPECT_EQ(out(), ">f+++++++++ d/x\\x0ay\n");
  EXPECT_EQ(err().find("d/x"), std::string::npos) << err();
  command_.transfer.dry_run = true;
  EXPECT_EQ(run_with(succeed), 0);
  EXPECT_EQ(out(), "a -> b\n.d..t...... d/\n");
}

TEST_F(Run, JsonIsAllThatStandsOnStandardOutput) {
  command_.transfer.dry_run = true;
  command_.output.stats = true;
  command_.output.json = true;
  EXPECT_EQ(run_with(succeed), 0);
  EXPECT_EQ(nlohmann::json::parse(out())["status"], "ok");
  EXPECT_NE(err().find("a -> b\nd/\nside "), std::string::npos);
}

TEST_F(Run, JsonIsPrintedForFailedRunsToo) {
  command_.output.json = true;
  EXPECT_EQ(run_with(lose_connection), 10);
  const nlohmann::json report = nlohmann::json::parse(out());
  EXPECT_EQ(report["exit_code"], 10);
  EXPECT_EQ(report["errors"].size(), 31u);
}

TEST_F(Run, LogIsAppendedWithTimesAndHoldsAllErrors) {
  const std::string log = directory_.path("log");
  command_.output.log_file = log;
  command_.output.quiet = true;
  EXPECT_EQ(run_with(succeed), 0);
  EXPECT_EQ(run_with(lose_connection), 10);
  struct stat attributes;
  ASSERT_EQ(::stat(log.c_str(), &attributes), 0);
  EXPECT_EQ(attributes.st_mode & 0777, 0600u);

  std::istringstream lines(directory_.read("log"));
  std::size_t errors = 0;
  std::size_t all = 0;
  for (std::string line; std::getline(lines, line); ++all) {
    EXPECT_EQ(line.substr(10, 1), "T");
    EXPECT_EQ(line.substr(23, 9), "Z fgsync[");
    if (line.ends_with("p: reading: why")) ++errors;
  }
  EXPECT_EQ(errors, 30u);
  // started, two notes, outcome; started, 30 errors, the session's end, outcome.
  EXPECT_EQ(all, 4u + 33u);
}

TEST_F(Run, ALogThatCannotBeOpenedEndsTheRunBeforeItStarts) {
  command_.output.log_file = directory_.path("absent/log");
  EXPECT_EQ(run_with(succeed), 3);
  EXPECT_EQ(err().find("note"), std::string::npos);
  EXPECT_NE(err().find("absent/log: opening the log: No such file or directory"),
            std::string::npos);
}

TEST_F(Run, OutputThatCannotBeWrittenIsNotSuccess) {
  const int full = ::open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  command_.output.json = true;
  EXPECT_EQ(run_into(full, succeed), 11);
  ::close(full);
  EXPECT_NE(err().find("standard output: writing: No space left"), std::string::npos);
}

TEST_F(Run, ABrokenPipeIsSaidAndDoesNotKill) {
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  ASSERT_NE(::signal(SIGPIPE, SIG_IGN), SIG_ERR);
  command_.output.stats = true;
  EXPECT_EQ(run_into(ends[1], succeed), 11);
  ::close(ends[1]);
  EXPECT_NE(err().find("Broken pipe"), std::string::npos);
}

}  // namespace
}  // namespace fgsync::tools
