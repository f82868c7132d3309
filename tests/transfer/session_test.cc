// Whole sessions: both halves in one process, over memory streams, on a real runtime and real
// files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <mutex>

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
  // 310 files, 3 directories, the symlink and the root.
  EXPECT_EQ(outcome.sender.paths.size(), 315u);
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
  EXPECT_EQ(outcome.sender.paths.size(), 315u);
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
  EXPECT_TRUE(directory_.exists(".fgsync/receipt"));
  EXPECT_FALSE(list_tree(directory_.path()).contains(".fgsync"));
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

// A tree of checkpoints with everything that announces them.
void make_checkpoints(const TemporaryDirectory& directory) {
  directory.make_directory("source");
  directory.make_directory("source/step_2");
  for (int i = 0; i < 20; ++i) {
    directory.write("source/step_2/f" + std::to_string(i), contents_of(100'000, std::uint32_t(i)));
  }
  directory.write("source/step_2/.metadata", "20 files");
  directory.write("source/step_2/a.index.json", "{}");
  directory.write("source/step_2/tracker", "2");
  directory.write("source/latest", "step_2");
  directory.make_symlink("step_2", "source/current");
}

TEST_P(WholeSession, MarkersComeAfterEverythingElseEachRankDurable) {
  make_checkpoints(directory_);
  SessionHarness harness(GetParam());
  harness.parameters.last = {"track*"};
  std::mutex mutex;
  std::vector<std::string> steps;
  harness.files().on_operation([&](const RecordedOperation& operation) {
    std::lock_guard lock(mutex);
    if (operation.operation == FileOperation::kSyncFileSystem) steps.push_back("sync");
    if (operation.operation == FileOperation::kRename) steps.push_back(operation.name);
  });
  const LocalOutcome outcome =
      harness.replicate({directory_.path("source")}, directory_.path("target"));
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_EQ(list_tree(directory_.path("target")), list_tree(directory_.path("source")));
  EXPECT_EQ(outcome.files.sent, 24u);
  ASSERT_GE(steps.size(), 10u);
  std::vector<std::string> last(steps.end() - 9, steps.end());
  std::sort(last.begin() + 1, last.begin() + 3);  // of one rank, in any order
  std::sort(last.begin() + 6, last.begin() + 8);
  EXPECT_EQ(last, (std::vector<std::string>{"sync", ".metadata", "a.index.json", "sync", "tracker",
                                            "sync", "current", "latest", "sync"}));
}

TEST_P(WholeSession, MarkersAreHeldBackWhenAFileFails) {
  make_checkpoints(directory_);
  directory_.make_directory("target");
  directory_.make_directory("target/step_2");
  directory_.make_directory("target/step_2/f7");  // in the way of a file
  directory_.write("target/latest", "step_1\n");
  const LocalOutcome outcome = replicate("source", "target");
  EXPECT_TRUE(outcome.receiver.status.ok()) << outcome.text();
  EXPECT_EQ(directory_.read("target/latest"), "step_1\n");
  EXPECT_FALSE(directory_.exists("target/current"));
  EXPECT_FALSE(directory_.exists("target/step_2/.metadata"));
  EXPECT_TRUE(directory_.exists("target/step_2/tracker"));  // none, without --last
  ASSERT_EQ(outcome.receiver.errors.size(), 5u) << outcome.text();
  for (const ErrorEntry& error : outcome.receiver.errors) {
    EXPECT_EQ(error.code, ErrorCode::kIoError) << error.path;
  }
  EXPECT_EQ(outcome.files.sent, 20u);
  EXPECT_FALSE(list_tree(directory_.path("target")).contains(".fgsync"));
}

// Whether its failure is its own, or ends the session.
TEST_P(WholeSession, AMarkerThatCannotBePublishedHoldsBackThoseBehindIt) {
  for (const int reason : {EIO, ENOSPC}) {
    TemporaryDirectory directory;
    make_checkpoints(directory);
    SessionHarness harness(GetParam());
    harness.files().only_about(".metadata");
    harness.files().fail(FileOperation::kRename, 1, reason);
    const LocalOutcome outcome =
        harness.replicate({directory.path("source")}, directory.path("target"));
    EXPECT_EQ(harness.files().failures(), 1u);
    EXPECT_FALSE(outcome.is_clean());
    EXPECT_TRUE(directory.exists("target/step_2/f7"));
    EXPECT_FALSE(directory.exists("target/latest"));
    EXPECT_FALSE(directory.exists("target/current"));
  }
}

TEST_P(WholeSession, MarkersAreHeldBackAsChangedWhenTheSourceMoved) {
  make_checkpoints(directory_);
  SessionHarness harness(GetParam());
  // Gone between its announcement and its turn.
  harness.files().only_about("f7");
  harness.files().fail(FileOperation::kOpenFile, 1, ENOENT);
  const LocalOutcome outcome =
      harness.replicate({directory_.path("source")}, directory_.path("target"));
  EXPECT_EQ(harness.files().failures(), 1u);
  EXPECT_FALSE(directory_.exists("target/latest"));
  ASSERT_EQ(outcome.receiver.errors.size(), 4u) << outcome.text();
  for (const ErrorEntry& error : outcome.receiver.errors) {
    EXPECT_EQ(error.code, ErrorCode::kSourceChanged) << error.path;
  }
}

TEST_P(WholeSession, AStateDirectoryIsNotPartOfATree) {
  make_source();
  directory_.make_directory("source/.fgsync");
  directory_.write("source/.fgsync/secret", "x");
  EXPECT_TRUE(replicate("source", "target").is_clean());
  EXPECT_FALSE(directory_.exists("target/.fgsync/secret"));
}

TEST_P(WholeSession, OwnersThatAreRefusedAreToldOnceAndFailNothing) {
  make_source();
  directory_.make_symlink("0", "source/another link");
  SessionHarness harness(GetParam());
  harness.files().claim_to_set_owners();
  harness.files().fail(FileOperation::kSetOwner, 1, EPERM, /*lasting=*/true);
  const LocalOutcome outcome =
      harness.replicate({directory_.path("source")}, directory_.path("target"));
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_GE(harness.files().failures(), 2u);
  EXPECT_EQ(
      outcome.receiver.notes,
      std::vector<std::string>{"owners could not be kept: the target refuses to give files away"});
  EXPECT_EQ(list_tree(directory_.path("target")), list_tree(directory_.path("source")));
}

TEST_P(WholeSession, ADirectoryInTheWayOfAFileFailsThatFileAlone) {
  make_source();
  directory_.make_directory("target");
  directory_.make_directory("target/4096");
  directory_.write("target/4096/kept", "kept");
  const LocalOutcome outcome = replicate("source", "target");
  EXPECT_TRUE(outcome.sender.status.ok()) << outcome.text();
  ASSERT_EQ(outcome.receiver.errors.size(), 2u);
  EXPECT_EQ(outcome.receiver.errors[0].path, directory_.path("target/4096"));
  EXPECT_EQ(outcome.receiver.errors[1].path, directory_.path("target/link"));  // a marker
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

TEST_P(WholeSession, ACancelEndsBothSidesAndTheNextRunGoesOn) {
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
    if (path.starts_with(".fgsync/")) continue;
    EXPECT_EQ(source.at(path), contents) << path;
  }

  SessionHarness next(GetParam());
  const LocalOutcome done = next.replicate({directory_.path("source")}, directory_.path("target"));
  EXPECT_TRUE(done.is_clean()) << done.text();
  EXPECT_EQ(list_files(directory_.path("target")), source);
  EXPECT_FALSE(list_tree(directory_.path("target")).contains(".fgsync"));
}

// Opens nothing, and the session fails meanwhile.
class FailingMeanwhile final : public DataConnections {
 public:
  explicit FailingMeanwhile(Session& session) : session_(session) {}
  io::Task<Status> open() override {
    session_.fail(Status(ErrorCode::kCancelled, "interrupted"));
    co_return Status();
  }
  io::Task<Result<DataStream::Connection>> replace(std::uint16_t /*stream*/, Status lost) override {
    co_return lost;
  }
  void stop() override {}

 private:
  Session& session_;
};

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
  FailingMeanwhile connections(session);
  std::vector<std::string> paths;
  paths.push_back(source);
  co_await run_sender(&session, &role, std::move(paths), &connections);
  *status = session.status();
}

TEST_P(WholeSession, ARunWithNothingToSendRemovesWhatADeadOneHasStaged) {
  directory_.make_directory("source");
  directory_.write("source/file", "contents");
  const std::string source = directory_.path("source");
  const std::string target = directory_.path("target");
  EXPECT_TRUE(SessionHarness(GetParam()).replicate({source}, target).is_clean());
  directory_.make_directory("target/.fgsync/staging-dead");
  directory_.write("target/.fgsync/staging-dead/0", "half a file");
  EXPECT_TRUE(SessionHarness(GetParam()).replicate({source}, target).is_clean());
  EXPECT_FALSE(directory_.exists("target/.fgsync/staging-dead"));
  EXPECT_TRUE(directory_.exists("target/.fgsync/receipt"));
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
