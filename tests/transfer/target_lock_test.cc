// Two runs into one target: whole sessions, while somebody else holds the lock.
#include "transfer/target_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>

#include "support/session_harness.h"
#include "support/temporary_directory.h"
#include "support/tree_listing.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes

class TwoRuns : public OnEachEngine {
 protected:
  void SetUp() override {
    OnEachEngine::SetUp();
    directory_.make_directory("source");
    directory_.make_directory("source/below");
    directory_.write("source/below/file", "new");
    directory_.make_directory("target");
    directory_.write("target/own", "kept");
    begin_other();
  }
  void begin_other() {
    if (!directory_.exists("target/.fgsync")) directory_.make_directory("target/.fgsync");
    other_ = ::open(directory_.path("target/.fgsync").c_str(), O_RDONLY | O_DIRECTORY);
    ASSERT_EQ(::flock(other_, LOCK_EX | LOCK_NB), 0);
  }
  void TearDown() override { end_other(); }
  void end_other() {
    const std::lock_guard lock(mutex_);
    if (other_ >= 0) ::close(std::exchange(other_, -1));
  }
  // What happens at the `nth` attempt to lock.
  void at_attempt(SessionHarness& harness, int nth, const std::function<void()>& act) {
    harness.files().on_operation([this, nth, act](const RecordedOperation& operation) {
      if (operation.operation == FileOperation::kTryLock && ++attempts_ == nth) act();
    });
  }
  LocalOutcome replicate(SessionHarness& harness) {
    return harness.replicate({directory_.path("source")}, directory_.path("target"));
  }

  const TemporaryDirectory directory_;
  std::mutex mutex_;
  int other_ = -1;
  std::atomic<int> attempts_{0};
};

FGSYNC_TEST_ON_EACH_ENGINE(TwoRuns);

TEST_P(TwoRuns, TheSecondWaitsForTheFirstAndSaysSo) {
  SessionHarness harness(GetParam());
  // Less than the wait: it is no stall.
  harness.parameters.timeout = std::chrono::milliseconds(400);
  at_attempt(harness, 10, [this] {
    EXPECT_FALSE(directory_.exists("target/below"));
    end_other();
  });
  const LocalOutcome outcome = replicate(harness);
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_GE(attempts_, 10);
  EXPECT_EQ(directory_.read("target/below/file"), "new");
  EXPECT_EQ(directory_.read("target/own"), "kept");
  ASSERT_EQ(outcome.receiver.notes.size(), 1u);
  EXPECT_TRUE(outcome.receiver.notes[0].starts_with("waiting for another run into " +
                                                    directory_.path("target") + " (pid " +
                                                    std::to_string(::getpid())))
      << outcome.receiver.notes[0];
}

TEST_P(TwoRuns, OneThatDoesNotWantToWaitIsRefusedAndChangesNothing) {
  SessionHarness harness(GetParam());
  harness.parameters.fail_if_locked = true;
  const LocalOutcome outcome = replicate(harness);
  EXPECT_EQ(outcome.sender.status.code(), ErrorCode::kLocked) << outcome.text();
  EXPECT_EQ(outcome.receiver.status.code(), ErrorCode::kLocked);
  EXPECT_NE(outcome.receiver.status.message().find(directory_.path("target/.fgsync")),
            std::string::npos);
  EXPECT_FALSE(directory_.exists("target/below"));
}

TEST_P(TwoRuns, ACancelEndsTheWait) {
  SessionHarness harness(GetParam());
  CancelToken& cancel = harness.cancel();
  at_attempt(harness, 3, [&cancel] { cancel.request(); });
  const LocalOutcome outcome = replicate(harness);
  EXPECT_EQ(outcome.receiver.status.code(), ErrorCode::kCancelled) << outcome.text();
  EXPECT_LT(attempts_, 8);
  EXPECT_FALSE(directory_.exists("target/below"));
  EXPECT_TRUE(directory_.exists("target/.fgsync"));  // the other one's
}

// What it finds in place may not stay so.
TEST_P(TwoRuns, OneThatHasNothingToDoWaitsBeforeItLooks) {
  end_other();
  SessionHarness first(GetParam());
  EXPECT_TRUE(replicate(first).is_clean());
  begin_other();
  SessionHarness second(GetParam());
  at_attempt(second, 2, [this] {
    directory_.write("target/below/file", "the other run's");
    end_other();
  });
  const LocalOutcome outcome = replicate(second);
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_EQ(directory_.read("target/below/file"), "new");
}

TEST_P(TwoRuns, OneThatHasNothingToDoMakesNoStateDirectory) {
  end_other();
  SessionHarness first(GetParam());
  EXPECT_TRUE(replicate(first).is_clean());
  std::filesystem::remove_all(directory_.path("target/.fgsync"));
  SessionHarness second(GetParam());
  const LocalOutcome outcome = replicate(second);
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_EQ(second.files().count(FileOperation::kTryLock), 0u);
  EXPECT_FALSE(directory_.exists("target/.fgsync"));
}

TEST_P(TwoRuns, ADryRunNeitherWaitsNorIsRefused) {
  SessionHarness harness(GetParam());
  harness.parameters.dry_run = true;
  harness.parameters.fail_if_locked = true;
  const LocalOutcome outcome = replicate(harness);
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_EQ(harness.files().count(FileOperation::kTryLock), 0u);
}

TEST_P(TwoRuns, WhereNoLockCanBeHadTheRunGoesOnWithout) {
  end_other();
  SessionHarness harness(GetParam());
  harness.files().only_about(".fgsync");
  harness.files().fail(FileOperation::kMakeDirectory, 1, EACCES);
  const LocalOutcome outcome = replicate(harness);
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_EQ(directory_.read("target/below/file"), "new");
}

TEST_P(TwoRuns, TroubleWithTheLockMakesTheTargetUnusable) {
  end_other();
  SessionHarness harness(GetParam());
  harness.files().fail(FileOperation::kTryLock, 1, EIO);
  const LocalOutcome outcome = replicate(harness);
  EXPECT_EQ(outcome.receiver.status.code(), ErrorCode::kUnusable) << outcome.text();
  EXPECT_FALSE(directory_.exists("target/below"));
}

}  // namespace
}  // namespace fgsync::transfer
