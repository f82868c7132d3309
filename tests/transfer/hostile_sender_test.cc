// A receiver against senders that break the rules of docs/protocol.md, in every way that needs no
// forged bytes below the message. Whatever the peer does, the receiver ends with the right reason,
// publishes nothing that is not whole, touches nothing outside of its root, leaves no staging
// behind and gives all buffers back (the pool asserts it).
#include "transfer/hostile_sender_fixture.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes

FGSYNC_TEST_ON_EACH_ENGINE(HostileSender);

TEST_P(HostileSender, AnHonestOneIsBelieved) {
  const HalfOutcome outcome =
      receive([](ScriptedPeer* peer) -> Task<void> { return play_until(peer, Phase::kDone); });
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_TRUE(outcome.errors.empty());
  const std::map<std::string, std::string> whole = {{"large", large_contents()},
                                                    {"small", small_contents()}};
  EXPECT_EQ(list_files(target_), whole);
  EXPECT_FALSE(list_tree(target_).contains(".fgsync"));
}

TEST_P(HostileSender, AnEndThatComesTooEarlyIsRefused) {
  expect_refusal(
      "of the data, before that of the manifest",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->end_streams();
        peer->say(wire::DataEnd{});
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "of the data, before all has come",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await play_until(peer, Phase::kChunkSent);
        peer->end_streams();
        peer->say(wire::DataEnd{});
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "of the data, before a file's last word",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await play_until(peer, Phase::kChunksSent);
        peer->end_streams();
        peer->say(wire::DataEnd{});
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "of the manifest, of which a part is missing",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->say(wire::ManifestEnd{.entries = 3});
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "of the manifest, twice",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await play_until(peer, Phase::kManifestEnded);
        peer->say(wire::ManifestEnd{.entries = 2});
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "of the manifest, with more behind it",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await play_until(peer, Phase::kManifestEnded);
        peer->say(batch_of({file_entry(3, 0, "late", 10)}));
      },
      ErrorCode::kProtocolError);
}

TEST_P(HostileSender, AManifestThatMakesNoSenseIsRefused) {
  expect_refusal(
      "an entry below a file",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->say(batch_of({file_entry(3, kSmall, "below", 10)}));
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "an entry below a symlink",
      [](ScriptedPeer* peer) -> Task<void> {
        peer->say(
            batch_of({symlink_entry(1, 0, "away", "../outside"), file_entry(2, 1, "planted", 10)}));
        co_return;
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "an entry below something unknown",
      [](ScriptedPeer* peer) -> Task<void> {
        peer->say(batch_of({file_entry(9, 5, "below", 10)}));
        co_return;
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "a number that was used",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->say(batch_of({file_entry(kLarge, 0, "other", 10)}));
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "the last number there is, after which all would come again",
      [](ScriptedPeer* peer) -> Task<void> {
        peer->say(batch_of({file_entry(~std::uint64_t{0}, 0, "last", 10)}));
        co_return;
      },
      ErrorCode::kProtocolError);
}

template <char... kName>
Task<void> announce_name(ScriptedPeer* peer) {
  const char name[] = {kName..., '!'};
  peer->say(batch_of({file_entry(1, 0, std::string(name, sizeof name - 1), 10)}));
  co_return;
}

TEST_P(HostileSender, NamesThatLeaveTheRootAreRefused) {
  expect_refusal("the parent", announce_name<'.', '.'>, ErrorCode::kProtocolError);
  expect_refusal("itself", announce_name<'.'>, ErrorCode::kProtocolError);
  expect_refusal("no name", announce_name<>, ErrorCode::kProtocolError);
  expect_refusal("a path", announce_name<'a', '/', 'b'>, ErrorCode::kProtocolError);
  expect_refusal("an absolute path", announce_name<'/', 'a'>, ErrorCode::kProtocolError);
  expect_refusal("with a NUL", announce_name<'a', '\0', 'b'>, ErrorCode::kProtocolError);
  expect_refusal("the state directory", announce_name<'.', 'f', 'g', 's', 'y', 'n', 'c'>,
                 ErrorCode::kProtocolError);
}

TEST_P(HostileSender, OnlyWhatWasOfferedMayStandInTheRoot) {
  expect_refusal(
      "another file than the one that was asked for",
      [](ScriptedPeer* peer) -> Task<void> {
        peer->say(batch_of({file_entry(1, 0, "asked", 5), file_entry(2, 0, ".profile", 10)}));
        co_return;
      },
      ErrorCode::kProtocolError, "asked");
  expect_refusal(
      "a symlink in place of the file",
      [](ScriptedPeer* peer) -> Task<void> {
        peer->say(batch_of({symlink_entry(1, 0, "asked", "/etc/passwd")}));
        co_return;
      },
      ErrorCode::kProtocolError, "asked");
  expect_refusal(
      "a directory in place of the file",
      [](ScriptedPeer* peer) -> Task<void> {
        peer->say(batch_of({directory_entry(1, 0, "asked")}));
        co_return;
      },
      ErrorCode::kProtocolError, "asked");
  expect_refusal(
      "a file beside the directory",
      [](ScriptedPeer* peer) -> Task<void> {
        peer->say(batch_of({directory_entry(1, 0, "asked"), file_entry(2, 0, "beside", 1)}));
        co_return;
      },
      ErrorCode::kProtocolError, "asked", wire::EntryType::kDirectory);
  expect_refusal(
      "the metadata of the directory that the file lands in",
      [](ScriptedPeer* peer) -> Task<void> {
        wire::ManifestEntry root = directory_entry(0, 0, "");
        root.mode = 0777;
        peer->say(batch_of({root, file_entry(1, 0, "asked", 5)}));
        co_return;
      },
      ErrorCode::kProtocolError, "asked");
  EXPECT_NE(list_tree(target_)["."].mode, 0777u);
}

TEST_P(HostileSender, ASizeAloneReservesNoMemory) {
  expect_refusal(
      "2^63 - 1 bytes",
      [](ScriptedPeer* peer) -> Task<void> {
        constexpr std::uint64_t kBytes = (std::uint64_t{1} << 63) - 1;
        peer->say(batch_of({file_entry(1, 0, "endless", kBytes)}));
        std::optional<wire::PlanBatch> plan = co_await peer->hear_next<wire::PlanBatch>();
        EXPECT_TRUE(plan.has_value());
        if (!plan) co_return;
        EXPECT_EQ(plan->decisions.front().action, wire::PlanAction::kFailed);
        peer->send_chunk(0, 1, 0, contents_of(kChunk, 1));
      },
      ErrorCode::kProtocolError);
}

template <typename T>
Task<void> say_first(ScriptedPeer* peer) {
  peer->say(T{});
  co_return;
}

TEST_P(HostileSender, MessagesThatASenderDoesNotSendAreRefused) {
  expect_refusal("Hello", say_first<wire::Hello>, ErrorCode::kProtocolError);
  expect_refusal("Setup", say_first<wire::Setup>, ErrorCode::kProtocolError);
  expect_refusal("SetupReply", say_first<wire::SetupReply>, ErrorCode::kProtocolError);
  expect_refusal("PlanBatch", say_first<wire::PlanBatch>, ErrorCode::kProtocolError);
  expect_refusal("SettledBatch", say_first<wire::SettledBatch>, ErrorCode::kProtocolError);
  expect_refusal("Summary", say_first<wire::Summary>, ErrorCode::kProtocolError);
  expect_refusal("ErrorBatch", say_first<wire::ErrorBatch>, ErrorCode::kProtocolError);
  expect_refusal(
      "nothing",
      [](ScriptedPeer* peer) -> Task<void> {
        peer->say_bytes({});
        co_return;
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "noise",
      [](ScriptedPeer* peer) -> Task<void> {
        peer->say_bytes(bytes_of(contents_of(5000, 9)));
        co_return;
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "a manifest in place of the summary",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await play_until(peer, Phase::kSummaryHeard);
        peer->say(batch_of({file_entry(3, 0, "late", 10)}));
      },
      ErrorCode::kProtocolError);
}

TEST_P(HostileSender, EndsOfStreamsAndCountsThatCannotBeAreRefused) {
  expect_refusal(
      "of a stream that is none",
      [](ScriptedPeer* peer) -> Task<void> {
        peer->say(wire::StreamEnded{2, 0, 0});
        co_return;
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "with a count that only a receiver can have",
      [](ScriptedPeer* peer) -> Task<void> {
        peer->say(wire::StreamEnded{0, 0, 5});
        co_return;
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "in a heartbeat",
      [](ScriptedPeer* peer) -> Task<void> {
        peer->say(wire::Heartbeat{1, {1, 1}});
        co_return;
      },
      ErrorCode::kProtocolError);
}

template <Phase kPhase>
Task<void> abort_at(ScriptedPeer* peer) {
  co_await play_until(peer, kPhase);
  wire::Abort abort;
  abort.error.code = ErrorCode::kCancelled;
  abort.error.message = "interrupted";
  peer->say(abort);
}

template <Phase kPhase>
Task<void> hang_up_at(ScriptedPeer* peer) {
  co_await play_until(peer, kPhase);
  // What was said before is still on its way: the end is said behind it.
  io::Io& io = peer->io();
  co_await io::resume_on(io);
  peer->hang_up();
}

template <Phase kPhase>
Task<void> fall_silent_at(ScriptedPeer* peer) {
  co_await play_until(peer, kPhase);
}

template <Phase kPhase>
struct Ends {
  static constexpr Script kAbort = abort_at<kPhase>;
  static constexpr Script kHangUp = hang_up_at<kPhase>;
  static constexpr Script kSilence = fall_silent_at<kPhase>;
};

#define FOR_EACH_PHASE(Member)                                                                     \
  {                                                                                                \
    Ends<Phase::kNothing>::Member, Ends<Phase::kAnnounced>::Member, Ends<Phase::kPlanned>::Member, \
        Ends<Phase::kManifestEnded>::Member, Ends<Phase::kPackSent>::Member,                       \
        Ends<Phase::kChunkSent>::Member, Ends<Phase::kChunksSent>::Member,                         \
        Ends<Phase::kFileEnded>::Member, Ends<Phase::kStreamsEnded>::Member,                       \
        Ends<Phase::kDataEnded>::Member, Ends<Phase::kSummaryHeard>::Member                        \
  }

TEST_P(HostileSender, AnAbortEndsTheSessionWithThePeersReasonAtEachPhase) {
  int phase = 0;
  for (Script script : FOR_EACH_PHASE(kAbort)) {
    SCOPED_TRACE(phase++);
    const HalfOutcome outcome = receive(script);
    EXPECT_EQ(outcome.status.code(), ErrorCode::kCancelled) << outcome.status.message();
    EXPECT_FALSE(told_.has_value()) << "an Abort was answered with one";
    expect_only_whole_files();
  }
}

TEST_P(HostileSender, ALostConnectionEndsTheSessionAtEachPhase) {
  int phase = 0;
  for (Script script : FOR_EACH_PHASE(kHangUp)) {
    SCOPED_TRACE(phase++);
    const HalfOutcome outcome = receive(script);
    EXPECT_EQ(outcome.status.code(), ErrorCode::kConnectionLost) << outcome.status.message();
    expect_only_whole_files();
  }
}

TEST_P(HostileSender, SilenceRunsIntoTheTimeoutAtEachPhase) {
  timeout_ = std::chrono::milliseconds(200);
  int phase = 0;
  for (Script script : FOR_EACH_PHASE(kSilence)) {
    SCOPED_TRACE(phase++);
    const HalfOutcome outcome = receive(script);
    EXPECT_EQ(outcome.status.code(), ErrorCode::kTimeout) << outcome.status.message();
    expect_only_whole_files();
  }
}

}  // namespace
}  // namespace fgsync::transfer
