// Whole sessions: both halves in one process, over memory streams, on a real runtime and real
// files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/session_harness.h"
#include "support/temporary_directory.h"
#include "support/tree_listing.h"
#include "transport/memory_stream.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes

class WholeSession : public OnEachEngine {
 protected:
  LocalOutcome replicate(const std::string& source, const std::string& target) {
    SessionHarness harness(GetParam());
    harness.parameters.dry_run = dry_run_;
    harness.parameters.timeout = std::chrono::seconds(30);
    return harness.replicate({directory_.path(source)}, directory_.path(target));
  }
  void set_time(const std::string& below, long seconds, long nanoseconds) {
    const timespec times[2] = {{seconds, nanoseconds}, {seconds, nanoseconds}};
    ASSERT_EQ(::utimensat(AT_FDCWD, directory_.path(below).c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
  }
  // Files around every boundary of packs and chunks, and everything else that is replicated.
  void make_source() {
    directory_.make_directory("source");
    constexpr std::size_t kChunk = 64 * 1024;
    const std::size_t sizes[] = {0,          1,          4096,           kChunk - 1,     kChunk,
                                 kChunk + 1, 2 * kChunk, 2 * kChunk + 1, 5 * kChunk + 77};
    std::uint32_t seed = 0;
    for (const std::size_t size : sizes) {
      directory_.write("source/" + std::to_string(size), contents_of(size, ++seed));
    }
    directory_.make_directory("source/deep");
    directory_.make_directory("source/deep/er");
    for (int i = 0; i < 300; ++i) {
      directory_.write("source/deep/er/" + std::to_string(i),
                       contents_of(std::size_t(i) * 7, ++seed));
    }
    directory_.make_directory("source/empty");
    directory_.make_symlink("../outside/nowhere", "source/link");
    directory_.write("source/name with \n and \xff", "odd");
    ::chmod(directory_.path("source/4096").c_str(), 0600);
    ::chmod(directory_.path("source/deep/er").c_str(), 0500);
    set_time("source/4096", 1'000'000'000, 1);
    set_time("source/0", -5, 999'999'999);
    set_time("source/link", 1'100'000'000, 7);
    set_time("source/deep/er", 1'200'000'000, 8);
    set_time("source/deep", 1'200'000'001, 9);
    set_time("source", 1'300'000'000, 10);
  }

  const TemporaryDirectory directory_;
  bool dry_run_ = false;
};

FGSYNC_TEST_ON_EACH_ENGINE(WholeSession);

TEST_P(WholeSession, TheTargetIsTheSourceToTheLastBit) {
  make_source();
  const LocalOutcome outcome = replicate("source", "target");
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_EQ(list_tree(directory_.path("target")), list_tree(directory_.path("source")));
  EXPECT_EQ(outcome.files.total, 310u);
  EXPECT_EQ(outcome.files.sent, 310u);
  EXPECT_EQ(outcome.bytes.sent, outcome.bytes.total);
  EXPECT_EQ(outcome.sender_digest, outcome.receiver_digest);
  // 310 files, 3 directories and the symlink; the root stood already when the plan was made.
  EXPECT_EQ(outcome.sender.paths.size(), 314u);
}

TEST_P(WholeSession, ASecondRunSendsNothing) {
  make_source();
  EXPECT_TRUE(replicate("source", "target").is_clean());
  const LocalOutcome again = replicate("source", "target");
  EXPECT_TRUE(again.is_clean()) << again.text();
  EXPECT_EQ(again.files.sent, 0u);
  EXPECT_EQ(again.files.unchanged, 310u);
  EXPECT_EQ(again.bytes.unchanged, again.bytes.total);
  EXPECT_TRUE(again.sender.paths.empty());
  EXPECT_EQ(list_tree(directory_.path("target")), list_tree(directory_.path("source")));
}

TEST_P(WholeSession, WhatChangedIsReplacedAndTheRestIsKept) {
  make_source();
  EXPECT_TRUE(replicate("source", "target").is_clean());
  directory_.write("source/65537", contents_of(70'000, 77));
  directory_.write("source/deep/er/17", "now something else");
  const LocalOutcome again = replicate("source", "target");
  EXPECT_TRUE(again.is_clean()) << again.text();
  EXPECT_EQ(again.files.sent, 2u);
  EXPECT_EQ(list_tree(directory_.path("target")), list_tree(directory_.path("source")));
}

TEST_P(WholeSession, ADryRunMakesNothingAndNamesEverything) {
  make_source();
  dry_run_ = true;
  const LocalOutcome outcome = replicate("source", "target");
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_FALSE(directory_.exists("target"));
  EXPECT_EQ(outcome.sender.paths.size(), 315u);  // the root as well
  EXPECT_EQ(outcome.files.sent, 0u);
}

TEST_P(WholeSession, ADryRunOverAReplicaNamesOnlyWhatChanged) {
  make_source();
  EXPECT_TRUE(replicate("source", "target").is_clean());
  directory_.write("source/1", "x");
  set_time("source/1", 1, 1);
  const auto before = list_tree(directory_.path("target"));
  dry_run_ = true;
  const LocalOutcome outcome = replicate("source", "target");
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_EQ(outcome.sender.paths, std::vector<std::string>{"1"});
  EXPECT_EQ(list_tree(directory_.path("target")), before);
}

TEST_P(WholeSession, OneFileLandsUnderTheNameItIsGiven) {
  directory_.write("file", contents_of(200'000, 3));
  const LocalOutcome outcome = replicate("file", "other");
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_EQ(directory_.read("other"), directory_.read("file"));
  EXPECT_FALSE(directory_.exists(".fgsync"));
}

TEST_P(WholeSession, SeveralSourcesStandBesideEachOther) {
  directory_.make_directory("one");
  directory_.write("one/same", "first");
  directory_.make_directory("two");
  directory_.write("two/same", "second");
  directory_.write("three", "third");
  SessionHarness harness(GetParam());
  const LocalOutcome outcome =
      harness.replicate({directory_.path("one/"), directory_.path("two"), directory_.path("three")},
                        directory_.path("target"));
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  const std::map<std::string, std::string> files = {
      {"one/same", "first"}, {"three", "third"}, {"two/same", "second"}};
  EXPECT_EQ(list_files(directory_.path("target")), files);
}

TEST_P(WholeSession, WhatIsNeitherFileNorDirectoryNorSymlinkIsNamed) {
  make_source();
  directory_.make_fifo("source/fifo");
  const LocalOutcome outcome = replicate("source", "target");
  EXPECT_TRUE(outcome.sender.status.ok());
  ASSERT_EQ(outcome.sender.errors.size(), 1u);
  EXPECT_EQ(outcome.sender.errors[0].path, directory_.path("source/fifo"));
  EXPECT_EQ(outcome.sender.errors[0].code, ErrorCode::kUnsupported);
  EXPECT_FALSE(directory_.exists("target/fifo"));
}

TEST_P(WholeSession, AStateDirectoryIsNotPartOfATree) {
  make_source();
  directory_.make_directory("source/.fgsync");
  directory_.write("source/.fgsync/secret", "x");
  EXPECT_TRUE(replicate("source", "target").is_clean());
  EXPECT_FALSE(directory_.exists("target/.fgsync"));
}

TEST_P(WholeSession, ADirectoryInTheWayOfAFileFailsThatFileAlone) {
  make_source();
  directory_.make_directory("target");
  directory_.make_directory("target/4096");
  directory_.write("target/4096/kept", "kept");
  const LocalOutcome outcome = replicate("source", "target");
  EXPECT_TRUE(outcome.sender.status.ok()) << outcome.text();
  ASSERT_EQ(outcome.receiver.errors.size(), 1u);
  EXPECT_EQ(outcome.receiver.errors[0].path, directory_.path("target/4096"));
  EXPECT_EQ(directory_.read("target/4096/kept"), "kept");
  EXPECT_EQ(list_files(directory_.path("target")).size(), 310u);
}

TEST_P(WholeSession, ARefusedMappingFailsBothSidesAndMakesNothing) {
  make_source();
  const LocalOutcome outcome = replicate("source", "source/inside");
  EXPECT_EQ(outcome.receiver.status.code(), ErrorCode::kUnusable);
  EXPECT_EQ(outcome.sender.status.code(), ErrorCode::kUnusable);
  EXPECT_FALSE(directory_.exists("source/inside"));
}

TEST_P(WholeSession, AMissingSourceFailsBothSides) {
  const LocalOutcome outcome = replicate("missing", "target");
  EXPECT_EQ(outcome.sender.status.code(), ErrorCode::kUnusable);
  EXPECT_EQ(outcome.receiver.status.code(), ErrorCode::kUnusable);
  EXPECT_FALSE(directory_.exists("target"));
}

TEST_P(WholeSession, ACancelEndsBothSidesAndLeavesNothingHalf) {
  make_source();
  SessionHarness harness(GetParam());
  CancelToken& cancel = harness.cancel();
  harness.files().on_operation([&cancel](const RecordedOperation& operation) {
    if (operation.operation == FileOperation::kWrite) cancel.request();
  });
  // Slow enough that the cancel comes first.
  harness.parameters.bandwidth_limit = 200'000;
  const LocalOutcome outcome =
      harness.replicate({directory_.path("source")}, directory_.path("target"));
  EXPECT_EQ(outcome.sender.status.code(), ErrorCode::kCancelled) << outcome.text();
  const auto source = list_files(directory_.path("source"));
  for (const auto& [path, contents] : list_files(directory_.path("target"))) {
    EXPECT_EQ(source.at(path), contents) << path;
  }
  EXPECT_FALSE(directory_.exists("target/.fgsync"));
}

// Opens nothing, and the session fails meanwhile.
io::Task<Status> open_while_it_fails(Session* session) {
  session->fail(Status(ErrorCode::kCancelled, "interrupted"));
  co_return Status();
}

io::Task<void> run_sender_that_fails_while_opening(TestRuntime* runtime, std::string source,
                                                   Status* status) {
  io::Io& io = runtime->control();
  auto [session_end, peer_end] = transport::make_memory_control_streams(io, io);
  CancelToken cancel;
  Session session(*runtime, std::move(session_end), "peer", cancel);
  session.parameters.chunk_bytes = 64 * 1024;
  wire::TargetAccept accept;
  accept.replica_of_contents = true;
  accept.names = {""};
  accept.displays = {"/target"};
  const wire::Message message = accept;
  std::vector<std::byte> bytes = wire::encode(message);
  (void)co_await peer_end->send(std::move(bytes));
  Role role;
  OpenStreams open_streams = [&session] { return open_while_it_fails(&session); };
  std::vector<std::string> paths;
  paths.push_back(source);
  co_await run_sender(&session, &role, std::move(paths), open_streams);
  *status = session.status();
}

TEST_P(WholeSession, ASessionThatFailsWhileItsStreamsOpenDoesNotRun) {
  directory_.make_directory("source");
  const auto runtime = TestRuntime::create(GetParam());
  Status status;
  runtime->run(
      run_sender_that_fails_while_opening(runtime.get(), directory_.path("source"), &status));
  EXPECT_EQ(status.code(), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace fgsync::transfer
