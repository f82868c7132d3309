// Either side of a session that compares, against peers that break the rules of docs/protocol.md.
#include <gtest/gtest.h>

#include "support/session_harness.h"
#include "support/temporary_directory.h"
#include "support/tree_listing.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes
using io::Task;

class HostileComparison : public OnEachEngine {
 protected:
  void SetUp() override {
    OnEachEngine::SetUp();
    directory_.make_directory("tree");
    directory_.write("tree/file", "contents");
    directory_.make_directory("tree/d");
    before_ = list_tree(directory_.path());
    harness_ = std::make_unique<SessionHarness>(GetParam());
    harness_->parameters.dry_run = harness_->parameters.compare = true;
    harness_->parameters.streams = 0;
  }

  void expect_refusal(const HalfOutcome& outcome) {
    EXPECT_EQ(outcome.status.code(), ErrorCode::kProtocolError) << outcome.status.message();
    ASSERT_TRUE(harness_->told_abort().has_value());
    EXPECT_EQ(harness_->told_abort()->error.code, ErrorCode::kProtocolError);
    EXPECT_EQ(list_tree(directory_.path()), before_);
  }
  void expect_sender_refused(Script script) {
    expect_refusal(harness_->receive_from(script, directory_.path("tree")));
  }
  void expect_receiver_refused(Script script) {
    expect_refusal(harness_->send_to(script, directory_.path("tree")));
  }

  const TemporaryDirectory directory_;
  decltype(list_tree("")) before_;
  std::unique_ptr<SessionHarness> harness_;
};

// Until the digest of the file is wanted.
Task<void> announce(ScriptedPeer* peer) {
  peer->say(batch_of({file_entry(1, 0, "file", 8), directory_entry(2, 0, "d")}));
  (void)co_await peer->hear_next<wire::PlanBatch>();
}

wire::FileEnd end_of(std::uint64_t id, const std::string& contents) {
  return {.entry = id, .complete = true, .digest = checksum_of_text(contents)};
}

TEST_P(HostileComparison, AnHonestSenderIsAnswered) {
  const auto script = [](ScriptedPeer* peer) -> Task<void> {
    co_await announce(peer);
    peer->say(wire::ManifestEnd{.entries = 2});
    peer->say(end_of(1, "CONTENTS"));
    peer->say(wire::DataEnd{});
    (void)co_await peer->hear_next<wire::Summary>();
    peer->say(wire::Summary{});
  };
  const HalfOutcome outcome = harness_->receive_from(script, directory_.path("tree"));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  ASSERT_EQ(outcome.differences.size(), 1u);
  EXPECT_EQ(outcome.differences[0].kind, DifferenceKind::kContents);
  EXPECT_EQ(outcome.differences[0].path, "file");
}

TEST_P(HostileComparison, ADigestThatWasNotAskedForIsRefused) {
  expect_sender_refused([](ScriptedPeer* peer) -> Task<void> {
    co_await announce(peer);
    peer->say(end_of(2, ""));
  });
}

TEST_P(HostileComparison, ASecondDigestIsRefused) {
  expect_sender_refused([](ScriptedPeer* peer) -> Task<void> {
    co_await announce(peer);
    peer->say(end_of(1, "contents"));
    peer->say(end_of(1, "contents"));
  });
}

TEST_P(HostileComparison, AnEndBeforeTheLastDigestIsRefused) {
  expect_sender_refused([](ScriptedPeer* peer) -> Task<void> {
    co_await announce(peer);
    peer->say(wire::ManifestEnd{.entries = 2});
    peer->say(wire::DataEnd{});
  });
}

TEST_P(HostileComparison, AManifestThatHasNotComeWholeIsRefused) {
  expect_sender_refused([](ScriptedPeer* peer) -> Task<void> {
    co_await announce(peer);
    peer->say(wire::ManifestEnd{.entries = 3});
  });
}

TEST_P(HostileComparison, AnEntryBelowSomethingUnknownIsRefused) {
  expect_sender_refused([](ScriptedPeer* peer) -> Task<void> {
    co_await announce(peer);
    peer->say(batch_of({file_entry(4, 3, "x", 1)}));
  });
}

TEST_P(HostileComparison, WhatOnlyAReceiverSaysIsRefusedFromASender) {
  expect_sender_refused([](ScriptedPeer* peer) -> Task<void> {
    co_await announce(peer);
    peer->say(wire::DifferenceBatch{{{DifferenceKind::kExtra, "x", ""}}});
  });
}

// The number of the announced file, whatever the order of the walk.
Task<std::uint64_t> hear_file(ScriptedPeer* peer) {
  while (true) {
    std::optional<wire::ManifestBatch> batch = co_await peer->hear_next<wire::ManifestBatch>();
    if (!batch) co_return 0;
    for (const wire::ManifestEntry& entry : batch->entries) {
      if (entry.name == "file") co_return entry.id;
    }
  }
}

TEST_P(HostileComparison, AnHonestReceiverGetsTheDigest) {
  const auto script = [](ScriptedPeer* peer) -> Task<void> {
    const std::uint64_t file = co_await hear_file(peer);
    peer->say(wire::PlanBatch{{{0, wire::PlanAction::kKept}, {file, wire::PlanAction::kSend}}});
    std::optional<wire::FileEnd> end = co_await peer->hear_next<wire::FileEnd>();
    EXPECT_TRUE(end && end->complete && end->digest == checksum_of_text("contents"));
    peer->hang_up();
  };
  EXPECT_FALSE(harness_->send_to(script, directory_.path("tree")).status.ok());
}

TEST_P(HostileComparison, AskingTwiceForADigestIsRefused) {
  expect_receiver_refused([](ScriptedPeer* peer) -> Task<void> {
    const std::uint64_t file = co_await hear_file(peer);
    peer->say(wire::PlanBatch{{{file, wire::PlanAction::kSend}}});
    peer->say(wire::PlanBatch{{{file, wire::PlanAction::kSend}}});
  });
}

TEST_P(HostileComparison, AskingForTheDigestOfADirectoryIsRefused) {
  expect_receiver_refused([](ScriptedPeer* peer) -> Task<void> {
    (void)co_await hear_file(peer);
    peer->say(wire::PlanBatch{{{0, wire::PlanAction::kSend}}});
  });
}

TEST_P(HostileComparison, SettlingWhatWasNotAskedForIsRefused) {
  expect_receiver_refused([](ScriptedPeer* peer) -> Task<void> {
    const std::uint64_t file = co_await hear_file(peer);
    peer->say(wire::SettledBatch{{{file, true}}});
  });
}

TEST_P(HostileComparison, ASummaryBeforeTheEndIsRefused) {
  expect_receiver_refused([](ScriptedPeer* peer) -> Task<void> {
    (void)co_await hear_file(peer);
    peer->say(wire::Summary{});
  });
}

FGSYNC_TEST_ON_EACH_ENGINE(HostileComparison);

}  // namespace
}  // namespace fgsync::transfer
