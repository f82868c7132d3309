// A receiver that compares contents (--checksum) against senders of every kind.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/session_harness.h"
#include "support/temporary_directory.h"
#include "support/tree_listing.h"
#include "wire/checksum.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes
using io::Task;
using wire::PlanAction;

const std::string kOld = "what stands";

// Of an announced file that is as long as what stands there, its digest is wanted.
Task<void> announce(ScriptedPeer* peer) {
  peer->say(batch_of({file_entry(1, 0, "file", kOld.size())}));
  std::optional<wire::PlanBatch> plan = co_await peer->hear_next<wire::PlanBatch>();
  EXPECT_TRUE(plan && plan->decisions.size() == 1);
  if (!plan) co_return;
  EXPECT_EQ(plan->decisions.front().action, PlanAction::kCompare);
}

wire::FileEnd digest_of(const std::string& contents) {
  const wire::Checksum sums[] = {wire::checksum_of(std::as_bytes(std::span(contents)))};
  return {.entry = 1, .complete = true, .digest = wire::file_digest(sums)};
}

Task<void> hear_decision(ScriptedPeer* peer, PlanAction expected) {
  std::optional<wire::PlanBatch> plan = co_await peer->hear_next<wire::PlanBatch>();
  EXPECT_TRUE(plan && plan->decisions.size() == 1);
  if (!plan) co_return;
  EXPECT_EQ(plan->decisions.front().action, expected);
}

class ComparedContents : public OnEachEngine {
 protected:
  HalfOutcome receive(Script script) {
    const std::string name = "target" + std::to_string(++runs_);
    directory_.make_directory(name);
    directory_.write(name + "/file", kOld);
    SessionHarness harness(GetParam());
    harness.parameters.changes.comparison = Comparison::kContents;
    HalfOutcome outcome = harness.receive_from(script, directory_.path(name));
    EXPECT_EQ(directory_.read(name + "/file"), kOld);
    return outcome;
  }

  const TemporaryDirectory directory_;
  int runs_ = 0;
};

FGSYNC_TEST_ON_EACH_ENGINE(ComparedContents);

TEST_P(ComparedContents, TheSameDigestIsUnchangedAndAnotherOneIsSent) {
  (void)receive([](ScriptedPeer* peer) -> Task<void> {
    co_await announce(peer);
    peer->say(digest_of(kOld));
    co_await hear_decision(peer, PlanAction::kUnchanged);
    peer->hang_up();
  });
  (void)receive([](ScriptedPeer* peer) -> Task<void> {
    co_await announce(peer);
    peer->say(digest_of("something else"));
    co_await hear_decision(peer, PlanAction::kSend);
    peer->hang_up();
  });
}

TEST_P(ComparedContents, WhatTheSenderCannotReadHasFailed) {
  (void)receive([](ScriptedPeer* peer) -> Task<void> {
    co_await announce(peer);
    peer->say(wire::FileEnd{.entry = 1, .complete = false, .digest = {}});
    co_await hear_decision(peer, PlanAction::kFailed);
    peer->hang_up();
  });
}

TEST_P(ComparedContents, ASenderThatSkipsADigestIsRefused) {
  const HalfOutcome outcome = receive([](ScriptedPeer* peer) -> Task<void> {
    co_await announce(peer);
    peer->say(wire::ManifestEnd{.entries = 1});
    peer->end_streams();
    peer->say(wire::DataEnd{});
  });
  EXPECT_EQ(outcome.status.code(), ErrorCode::kProtocolError) << outcome.status.message();
}

TEST_P(ComparedContents, ADigestThatNobodyAskedForIsRefused) {
  const HalfOutcome early = receive([](ScriptedPeer* peer) -> Task<void> {
    peer->say(batch_of({file_entry(1, 0, "file", kOld.size())}));
    for (int i = 0; i < 2; ++i) peer->say(digest_of(kOld));
    co_return;
  });
  EXPECT_EQ(early.status.code(), ErrorCode::kProtocolError) << early.status.message();
  const HalfOutcome twice = receive([](ScriptedPeer* peer) -> Task<void> {
    co_await announce(peer);
    peer->say(digest_of(kOld));
    co_await hear_decision(peer, PlanAction::kUnchanged);
    peer->say(digest_of(kOld));
  });
  EXPECT_EQ(twice.status.code(), ErrorCode::kProtocolError) << twice.status.message();
}

}  // namespace
}  // namespace fgsync::transfer
