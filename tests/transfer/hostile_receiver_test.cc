// A sender against receivers that break the rules of docs/protocol.md. Whatever the peer does, the
// sender ends with the right reason and never reports a success.
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/session_harness.h"
#include "support/temporary_directory.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes
using io::Task;
using wire::PlanAction;

constexpr std::size_t kChunk = 64 * 1024;

// Answers everything that is announced until the end of the manifest, as an empty target would. The
// numbers of the files go to `files`, the rest's to `others`.
struct Announced {
  std::vector<std::uint64_t> small;
  std::vector<std::uint64_t> large;
  std::vector<std::uint64_t> directories;
};

Task<void> hear_manifest(ScriptedPeer* peer, Announced* announced) {
  while (true) {
    std::optional<wire::Message> message = co_await peer->hear();
    if (!message || std::holds_alternative<wire::ManifestEnd>(*message)) co_return;
    const auto* batch = std::get_if<wire::ManifestBatch>(&*message);
    if (batch == nullptr) continue;
    for (const wire::ManifestEntry& entry : batch->entries) {
      auto& ids = entry.type == wire::EntryType::kDirectory ? announced->directories
                  : entry.size > kChunk                     ? announced->large
                                                            : announced->small;
      ids.push_back(entry.id);
    }
  }
}

void decide(ScriptedPeer* peer, const std::vector<std::uint64_t>& ids, PlanAction action) {
  wire::PlanBatch plan;
  for (const std::uint64_t id : ids) plan.decisions.push_back({id, action});
  peer->say(plan);
}

void settle(ScriptedPeer* peer, const std::vector<std::uint64_t>& ids, bool replicated) {
  wire::SettledBatch settled;
  for (const std::uint64_t id : ids) settled.entries.push_back({id, replicated});
  peer->say(settled);
}

class HostileReceiver : public OnEachEngine {
 protected:
  void SetUp() override {
    OnEachEngine::SetUp();
    directory_.make_directory("source");
    directory_.make_directory("source/directory");
    directory_.write("source/directory/small", contents_of(3000, 1));
    directory_.write("source/large", contents_of(2 * kChunk + 1000, 2));
  }

  HalfOutcome send(Script script) {
    SessionHarness harness(GetParam());
    harness.parameters.timeout = timeout_;
    harness.parameters.dry_run = dry_run_;
    harness.parameters.changes = changes_;
    HalfOutcome outcome = harness.send_to(script, directory_.path("source"));
    told_ = harness.told_abort();
    return outcome;
  }
  void expect_refusal(const char* what, Script script, ErrorCode code = ErrorCode::kProtocolError) {
    SCOPED_TRACE(what);
    const HalfOutcome outcome = send(script);
    EXPECT_EQ(outcome.status.code(), code) << outcome.status.message();
    ASSERT_TRUE(told_.has_value());
    EXPECT_EQ(told_->error.code, code);
  }

  const TemporaryDirectory directory_;
  std::chrono::milliseconds timeout_{0};
  bool dry_run_ = false;
  Changes changes_;
  std::optional<wire::Abort> told_;
};

FGSYNC_TEST_ON_EACH_ENGINE(HostileReceiver);

TEST_P(HostileReceiver, AskingForWhatWasNotOfferedIsRefused) {
  expect_refusal("an unknown entry", [](ScriptedPeer* peer) -> Task<void> {
    decide(peer, {4711}, PlanAction::kSend);
    co_return;
  });
  expect_refusal("a directory", [](ScriptedPeer* peer) -> Task<void> {
    Announced announced;
    co_await hear_manifest(peer, &announced);
    decide(peer, announced.directories, PlanAction::kSend);
  });
  expect_refusal("twice", [](ScriptedPeer* peer) -> Task<void> {
    Announced announced;
    co_await hear_manifest(peer, &announced);
    decide(peer, announced.large, PlanAction::kSend);
    decide(peer, announced.large, PlanAction::kSend);
  });
}

TEST_P(HostileReceiver, CountsOfFramesThatCannotBeAreRefused) {
  expect_refusal("more than were sent", [](ScriptedPeer* peer) -> Task<void> {
    peer->say(wire::Heartbeat{1, {0, 1000}});
    co_return;
  });
  expect_refusal("of more streams than there are", [](ScriptedPeer* peer) -> Task<void> {
    peer->say(wire::Heartbeat{1, {0, 0, 0}});
    co_return;
  });
  expect_refusal("more than were sent, at the end", [](ScriptedPeer* peer) -> Task<void> {
    peer->say(wire::StreamEnded{1, 0, 1000});
    co_return;
  });
  expect_refusal("at the end of a stream that is none", [](ScriptedPeer* peer) -> Task<void> {
    peer->say(wire::StreamEnded{2, 0, 0});
    co_return;
  });
}

TEST_P(HostileReceiver, AskingForContentsInADryRunIsRefused) {
  dry_run_ = true;
  expect_refusal("a file", [](ScriptedPeer* peer) -> Task<void> {
    Announced announced;
    co_await hear_manifest(peer, &announced);
    decide(peer, announced.small, PlanAction::kSend);
  });
}

TEST_P(HostileReceiver, PassingOverWhereNothingMayBeIsRefused) {
  expect_refusal("a file", [](ScriptedPeer* peer) -> Task<void> {
    Announced announced;
    co_await hear_manifest(peer, &announced);
    decide(peer, announced.small, PlanAction::kPassedOver);
  });
}

TEST_P(HostileReceiver, AskingForDigestsUnaskedIsRefused) {
  expect_refusal("where contents are not compared", [](ScriptedPeer* peer) -> Task<void> {
    Announced announced;
    co_await hear_manifest(peer, &announced);
    decide(peer, announced.small, PlanAction::kCompare);
  });
  changes_.comparison = Comparison::kContents;
  expect_refusal("of an unknown entry", [](ScriptedPeer* peer) -> Task<void> {
    decide(peer, {4711}, PlanAction::kCompare);
    co_return;
  });
  expect_refusal("of a directory", [](ScriptedPeer* peer) -> Task<void> {
    Announced announced;
    co_await hear_manifest(peer, &announced);
    decide(peer, announced.directories, PlanAction::kCompare);
  });
  expect_refusal("twice", [](ScriptedPeer* peer) -> Task<void> {
    Announced announced;
    co_await hear_manifest(peer, &announced);
    decide(peer, announced.small, PlanAction::kCompare);
    decide(peer, announced.small, PlanAction::kCompare);
  });
  expect_refusal("of a file that is being sent", [](ScriptedPeer* peer) -> Task<void> {
    Announced announced;
    co_await hear_manifest(peer, &announced);
    decide(peer, announced.large, PlanAction::kSend);
    decide(peer, announced.large, PlanAction::kCompare);
  });
}

TEST_P(HostileReceiver, DecisionsThatMakeNoSenseAreRefused) {
  expect_refusal("about an unknown entry", [](ScriptedPeer* peer) -> Task<void> {
    decide(peer, {4711}, PlanAction::kUnchanged);
    co_return;
  });
  expect_refusal("a second one", [](ScriptedPeer* peer) -> Task<void> {
    Announced announced;
    co_await hear_manifest(peer, &announced);
    decide(peer, announced.directories, PlanAction::kMade);
    decide(peer, announced.directories, PlanAction::kMade);
  });
  expect_refusal("another one about what is being sent", [](ScriptedPeer* peer) -> Task<void> {
    Announced announced;
    co_await hear_manifest(peer, &announced);
    decide(peer, announced.large, PlanAction::kSend);
    decide(peer, announced.large, PlanAction::kUnchanged);
  });
  expect_refusal("a file made without its contents", [](ScriptedPeer* peer) -> Task<void> {
    Announced announced;
    co_await hear_manifest(peer, &announced);
    decide(peer, announced.small, PlanAction::kMade);
  });
}

TEST_P(HostileReceiver, SettlingWhatWasNotSentIsRefused) {
  expect_refusal("an unknown entry", [](ScriptedPeer* peer) -> Task<void> {
    settle(peer, {4711}, true);
    co_return;
  });
  expect_refusal("a file that was not asked for", [](ScriptedPeer* peer) -> Task<void> {
    Announced announced;
    co_await hear_manifest(peer, &announced);
    settle(peer, announced.small, true);
  });
  expect_refusal("a directory", [](ScriptedPeer* peer) -> Task<void> {
    Announced announced;
    co_await hear_manifest(peer, &announced);
    settle(peer, announced.directories, true);
  });
}

TEST_P(HostileReceiver, SettlingAFileBeforeItWasSentIsNoSuccess) {
  // Whether a chunk has been sent by then is a race; that the session fails is not: the digests of
  // a receiver that guesses never agree.
  const HalfOutcome outcome = send([](ScriptedPeer* peer) -> Task<void> {
    Announced announced;
    co_await hear_manifest(peer, &announced);
    decide(peer, announced.directories, PlanAction::kKept);
    wire::PlanBatch plan;
    for (const std::uint64_t id : announced.large)
      plan.decisions.push_back({id, PlanAction::kSend});
    for (const std::uint64_t id : announced.small)
      plan.decisions.push_back({id, PlanAction::kSend});
    peer->say(plan);
    settle(peer, announced.large, true);
    settle(peer, announced.small, true);
    peer->say(wire::Summary{});
  });
  EXPECT_FALSE(outcome.status.ok());
}

TEST_P(HostileReceiver, ASummaryBeforeEverythingIsSettledIsRefused) {
  expect_refusal("at once", [](ScriptedPeer* peer) -> Task<void> {
    peer->say(wire::Summary{});
    co_return;
  });
  expect_refusal("before the files are settled", [](ScriptedPeer* peer) -> Task<void> {
    Announced announced;
    co_await hear_manifest(peer, &announced);
    decide(peer, announced.directories, PlanAction::kKept);
    decide(peer, announced.large, PlanAction::kSend);
    decide(peer, announced.small, PlanAction::kSend);
    (void)co_await peer->hear_next<wire::DataEnd>();
    peer->say(wire::Summary{});
  });
}

TEST_P(HostileReceiver, AnotherTreeDigestFailsTheSession) {
  expect_refusal(
      "of a tree of which nothing is there",
      [](ScriptedPeer* peer) -> Task<void> {
        Announced announced;
        co_await hear_manifest(peer, &announced);
        decide(peer, announced.directories, PlanAction::kKept);
        decide(peer, announced.large, PlanAction::kUnchanged);
        decide(peer, announced.small, PlanAction::kUnchanged);
        (void)co_await peer->hear_next<wire::DataEnd>();
        peer->say(wire::Summary{});
      },
      ErrorCode::kChecksumMismatch);
}

TEST_P(HostileReceiver, FilesItGaveUpEndTheSessionWithoutTheirContents) {
  // All settled as failed: the digest of nothing but the directories.
  const HalfOutcome outcome = send([](ScriptedPeer* peer) -> Task<void> {
    Announced announced;
    co_await hear_manifest(peer, &announced);
    decide(peer, announced.directories, PlanAction::kFailed);
    decide(peer, announced.large, PlanAction::kSend);
    decide(peer, announced.small, PlanAction::kSend);
    settle(peer, announced.large, false);
    settle(peer, announced.small, false);
    (void)co_await peer->hear_next<wire::DataEnd>();
    peer->say(wire::Summary{});
    (void)co_await peer->hear_next<wire::Summary>();
    peer->hang_up();
  });
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_FALSE(told_.has_value());
}

template <typename T>
Task<void> say_first(ScriptedPeer* peer) {
  peer->say(T{});
  co_return;
}

TEST_P(HostileReceiver, MessagesThatAReceiverDoesNotSendAreRefused) {
  expect_refusal("Hello", say_first<wire::Hello>);
  expect_refusal("SetupReply", say_first<wire::SetupReply>);
  expect_refusal("ManifestBatch", say_first<wire::ManifestBatch>);
  expect_refusal("ManifestEnd", say_first<wire::ManifestEnd>);
  expect_refusal("FileEnd", say_first<wire::FileEnd>);
  expect_refusal("DataEnd", say_first<wire::DataEnd>);
  expect_refusal("noise", [](ScriptedPeer* peer) -> Task<void> {
    peer->say_bytes(bytes_of(contents_of(5000, 9)));
    co_return;
  });
}

Task<void> abort_after_plan(ScriptedPeer* peer) {
  Announced announced;
  co_await hear_manifest(peer, &announced);
  decide(peer, announced.large, PlanAction::kSend);
  wire::Abort abort;
  abort.error.code = ErrorCode::kNoSpace;
  abort.error.message = "the disk is full";
  peer->say(abort);
}

TEST_P(HostileReceiver, AnAbortEndsTheSessionWithThePeersReason) {
  const HalfOutcome outcome = send(abort_after_plan);
  EXPECT_EQ(outcome.status.code(), ErrorCode::kNoSpace);
  EXPECT_NE(outcome.status.message().find("the disk is full"), std::string::npos);
  EXPECT_FALSE(told_.has_value());
}

Task<void> hang_up_after_plan(ScriptedPeer* peer) {
  Announced announced;
  co_await hear_manifest(peer, &announced);
  decide(peer, announced.large, PlanAction::kSend);
  io::Io& io = peer->io();
  co_await io::resume_on(io);
  peer->hang_up();
}

TEST_P(HostileReceiver, ALostConnectionEndsTheSession) {
  EXPECT_EQ(send(hang_up_after_plan).status.code(), ErrorCode::kConnectionLost);
}

Task<void> stay_silent(ScriptedPeer*) { co_return; }

// No hostility: it settles markers after everything else. Were they counted among the entries under
// way, none would be left for what they wait for.
Task<void> hear_of_everything(ScriptedPeer* peer) {
  std::optional<wire::ManifestEnd> end = co_await peer->hear_next<wire::ManifestEnd>();
  EXPECT_GT(end ? end->entries : 0, limits::kEntriesOutstandingMax + limits::kManifestBatchEntries);
  peer->hang_up();
}

TEST_P(HostileReceiver, MarkersThatAreNotSettledDoNotHoldUpTheRest) {
  directory_.write("source/m", "");
  for (std::size_t i = 0; i < limits::kEntriesOutstandingMax + 2000; ++i) {
    ASSERT_EQ(::link(directory_.path("source/m").c_str(),
                     directory_.path("source/m" + std::to_string(i)).c_str()),
              0);
  }
  SessionHarness harness(GetParam());
  harness.parameters.last = {"m*"};
  const HalfOutcome outcome = harness.send_to(hear_of_everything, directory_.path("source"));
  EXPECT_EQ(outcome.status.code(), ErrorCode::kConnectionLost);
}

TEST_P(HostileReceiver, SilenceRunsIntoTheTimeout) {
  timeout_ = std::chrono::milliseconds(200);
  EXPECT_EQ(send(stay_silent).status.code(), ErrorCode::kTimeout);
}

Task<void> flood_with_notes(ScriptedPeer* peer) {
  for (int message = 0; message < 100; ++message) {
    wire::NoteBatch batch;
    for (int i = 0; i < 64; ++i) batch.notes.push_back(std::to_string(message * 64 + i));
    peer->say(batch);
  }
  wire::Abort abort;
  abort.error.code = ErrorCode::kCancelled;
  abort.error.message = "enough";
  peer->say(abort);
  co_return;
}

TEST_P(HostileReceiver, AFloodOfNotesIsNotKept) {
  EXPECT_EQ(send(flood_with_notes).status.code(), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace fgsync::transfer
