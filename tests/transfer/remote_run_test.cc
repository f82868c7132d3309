// Runs over TCP on loopback, both ends in this process: what becomes of them when far sides are
// lost.
#include "transfer/remote_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <list>

#include "support/scripted_peer.h"
#include "support/temporary_directory.h"
#include "support/test_runtime.h"
#include "support/tree_listing.h"
#include "transfer/far_session.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes
using namespace std::chrono_literals;

constexpr std::uint32_t kChunk = 64 * 1024;

// A far host that is this one. Its far sides can be lost.
class LoopbackHost final : public FarHost {
 public:
  LoopbackHost(io::Runtime& runtime, CancelToken& cancel) : runtime_(runtime), cancel_(cancel) {}

  io::Task<Result<FarAddress>> start(std::chrono::milliseconds /*patience*/) override {
    ++started;
    if (fails_from != 0 && started >= fails_from) co_return failure;
    io::Network& network = runtime_.environment().network();
    auto listener = network.listen(*io::SocketAddress::parse("127.0.0.1", 0));
    EXPECT_TRUE(listener.ok());
    FarAddress address;
    address.peer = *network.local_address(*listener);
    runtime_.environment().random_bytes(address.key);
    runtime_.environment().random_bytes(address.session);
    gone_ = false;
    FarSession::Settings settings;
    settings.streams_max = 8;
    settings.starter_is_gone = [this] { return gone_.load(); };
    settings.decorate = [this](Session& session, std::unique_ptr<DataConnections> connections) {
      session_ = &session;
      return connections;
    };
    sessions_.emplace_back(runtime_, std::move(*listener), address.key, address.session,
                           std::move(settings), cancel_);
    running_.spawn(runtime_.control(), serve(&sessions_.back()));
    co_return address;
  }

  io::Task<void> finish(bool /*succeeded*/) override {
    gone_ = true;
    co_await running_.join(runtime_.control());
  }

  // The far side that works is no more. Any thread.
  void lose() { session_.load()->fail(Status(ErrorCode::kConnectionLost, "lost")); }

  int started = 0;
  int fails_from = 0;  // the first start that fails; 0: none
  Status failure{ErrorCode::kRemoteShellFailed, "the shell failed"};

 private:
  static io::Task<void> serve(FarSession* session) { co_await session->run(); }

  io::Runtime& runtime_;
  CancelToken& cancel_;
  std::list<FarSession> sessions_;
  io::TaskGroup running_;
  std::atomic<bool> gone_{false};
  std::atomic<Session*> session_{nullptr};
};

class Watching final : public RunListener {
 public:
  void on_tick(Session& /*session*/, const ProgressSnapshot& progress) override {
    EXPECT_GE(progress.bytes_done, last_.bytes_done);
    EXPECT_GE(progress.files_done, last_.files_done);
    last_ = progress;
  }
  void on_note(const std::string& note) override {
    notes.push_back(note);
    if (when_noted) when_noted();
  }
  std::vector<std::string> notes;
  std::function<void()> when_noted;

 private:
  ProgressSnapshot last_;
};

class Remote : public ::testing::Test {
 protected:
  Remote() {
    directory_.make_directory("source");
    directory_.write("source/large", contents_of(9 * kChunk + 5, 1));
    directory_.write("source/larger", contents_of(12 * kChunk, 2));
    for (int i = 0; i < 30; ++i) {
      directory_.write("source/small" + std::to_string(i), contents_of(20'000, 3 + unsigned(i)));
    }
    source_ = list_tree(directory_.path("source"));
  }

  RemoteRun::Plan plan(bool push) {
    target_ = "target" + std::to_string(++runs_);
    RemoteRun::Plan plan;
    plan.setup.initiator = push ? wire::Role::kSender : wire::Role::kReceiver;
    plan.setup.cipher = Cipher::kAuto;
    plan.setup.streams = 3;
    plan.setup.chunk_bytes = kChunk;
    plan.setup.timeout_ms = 60'000;
    plan.sources = {directory_.path("source")};
    plan.target = directory_.path(target_);
    if (push) {
      plan.setup.target = plan.target;
    } else {
      plan.setup.sources = plan.sources;
    }
    plan.host = "far";
    plan.connect_timeout = 10s;
    plan.retry_for = retry_for_;
    return plan;
  }

  struct Outcome {
    TransferReport report;
    int started = 0;
    bool was_lost = false;
    std::vector<std::string> notes;
  };
  // The far side is lost at the given write of the receiver; 0: never.
  Outcome replicate(bool push, std::uint64_t lost_at = 0) {
    const auto runtime = TestRuntime::create(IoEngine::kPosix);
    LoopbackHost host(*runtime, far_cancel_);
    host.fails_from = fails_from_;
    host.failure = failure_;
    Watching listener;
    listener.when_noted = [this] {
      if (cancels_when_lost_) cancel_.request();
    };
    std::atomic<std::uint64_t> writes{0};
    std::atomic<bool> lost{false};
    runtime->files().on_operation([&](const RecordedOperation& operation) {
      if (operation.operation != FileOperation::kWrite || ++writes != lost_at) return;
      host.lose();
      lost = true;
    });
    Outcome outcome;
    RemoteRun run(*runtime, plan(push), host, listener, cancel_);
    runtime->run(run.run(&outcome.report));
    outcome.started = host.started;
    outcome.was_lost = lost;
    outcome.notes = std::move(listener.notes);
    return outcome;
  }
  void expect_replica(const Outcome& outcome) {
    const TransferReport& report = outcome.report;
    EXPECT_TRUE(report.status.ok()) << report.status.message();
    EXPECT_EQ(list_tree(directory_.path(target_)), source_);
    EXPECT_EQ(report.files.sent, report.files.total);
    EXPECT_EQ(report.bytes.sent, report.bytes.total);
    EXPECT_EQ(report.files.unchanged, 0u);
  }

  const TemporaryDirectory directory_;
  std::map<std::string, ListedEntry> source_;
  std::chrono::milliseconds retry_for_ = 30s;
  int fails_from_ = 0;
  Status failure_{ErrorCode::kRemoteShellFailed, "the shell failed"};
  bool cancels_when_lost_ = false;
  CancelToken cancel_;
  CancelToken far_cancel_;
  std::string target_;
  int runs_ = 0;
};

TEST_F(Remote, ARunWithoutTroubleHasOneSession) {
  for (const bool push : {true, false}) {
    const Outcome outcome = replicate(push);
    expect_replica(outcome);
    EXPECT_EQ(outcome.started, 1);
    EXPECT_TRUE(outcome.notes.empty());
    EXPECT_EQ(outcome.report.mapping.size(), 1u);
  }
}

TEST_F(Remote, AFarSideThatIsLostAtAnyWriteIsStartedAgain) {
  for (const bool push : {true, false}) {
    for (std::uint64_t write = 1;; write += 6) {
      SCOPED_TRACE("write " + std::to_string(write));
      const Outcome outcome = replicate(push, write);
      expect_replica(outcome);
      if (!outcome.was_lost) break;
      ASSERT_LT(write, 200u);
      // The last write may come so late that the session ends well all the same.
      EXPECT_LE(outcome.started, 2);
      EXPECT_EQ(outcome.notes.size(), std::size_t(outcome.started - 1));
    }
  }
}

TEST_F(Remote, WhatNeverStoodIsNotTriedAgain) {
  fails_from_ = 1;
  const Outcome outcome = replicate(true);
  EXPECT_EQ(outcome.report.status.code(), ErrorCode::kRemoteShellFailed);
  EXPECT_EQ(outcome.started, 1);
  EXPECT_TRUE(outcome.notes.empty());
}

TEST_F(Remote, ItIsGivenUpWhenTheTimeIsOver) {
  fails_from_ = 2;
  retry_for_ = 700ms;
  const Outcome outcome = replicate(true, 2);
  EXPECT_EQ(outcome.report.status.code(), ErrorCode::kConnectionLost);
  EXPECT_NE(outcome.report.status.message().find("not made again within 0.7 s: the shell failed"),
            std::string::npos)
      << outcome.report.status.message();
  EXPECT_GT(outcome.started, 2);
  EXPECT_EQ(outcome.notes.size(), 1u);
}

TEST_F(Remote, WithoutTimeForItNothingIsTriedAgain) {
  retry_for_ = 0ms;
  const Outcome outcome = replicate(true, 2);
  EXPECT_EQ(outcome.report.status.code(), ErrorCode::kConnectionLost);
  EXPECT_EQ(outcome.started, 1);
}

TEST_F(Remote, WhatIsNoLinksDoingIsNotTriedAgain) {
  fails_from_ = 2;
  for (const ErrorCode code : {ErrorCode::kUnauthenticated, ErrorCode::kVersionMismatch,
                               ErrorCode::kUnsupported, ErrorCode::kRefused}) {
    failure_ = Status(code, "no");
    const Outcome outcome = replicate(true, 2);
    EXPECT_EQ(outcome.report.status.code(), code);
    EXPECT_EQ(outcome.started, 2);
  }
}

TEST_F(Remote, ACancelEndsTheAttempts) {
  cancels_when_lost_ = true;
  fails_from_ = 2;
  const Outcome outcome = replicate(true, 2);
  EXPECT_EQ(outcome.report.status.code(), ErrorCode::kCancelled);
  EXPECT_EQ(outcome.started, 1);
}

}  // namespace
}  // namespace fgsync::transfer
