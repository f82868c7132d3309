// A receiver against senders that break the rules of docs/protocol.md, in every way that needs no
// forged bytes below the message. Whatever the peer does, the receiver ends with the right reason,
// publishes nothing that is not whole, touches nothing outside of its root, leaves no staging
// behind and gives all buffers back (the pool asserts it).
#include <gtest/gtest.h>

#include "support/session_harness.h"
#include "support/temporary_directory.h"
#include "support/tree_listing.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes
using io::Task;

constexpr std::size_t kChunk = 64 * 1024;
constexpr std::size_t kLargeBytes = 2 * kChunk + 1000;
constexpr std::uint64_t kSmall = 1;
constexpr std::uint64_t kLarge = 2;

std::string small_contents() { return contents_of(3000, 1); }
std::string large_contents() { return contents_of(kLargeBytes, 2); }

wire::FileEnd large_end() {
  std::vector<wire::Checksum> chunks;
  const std::string contents = large_contents();
  for (std::size_t at = 0; at < contents.size(); at += kChunk) {
    chunks.push_back(checksum_of_text(contents.substr(at, kChunk)));
  }
  wire::FileEnd end;
  end.entry = kLarge;
  end.complete = true;
  end.digest = wire::file_digest(chunks);
  return end;
}

void send_large_chunk(ScriptedPeer* peer, std::size_t index) {
  peer->send_chunk(index % 2, kLarge, index * kChunk,
                   large_contents().substr(index * kChunk, kChunk));
}

// Announces a small and a large file and waits for the plan.
Task<void> announce(ScriptedPeer* peer) {
  peer->say(batch_of({file_entry(kSmall, 0, "small", small_contents().size()),
                      file_entry(kLarge, 0, "large", kLargeBytes)}));
  (void)co_await peer->hear_next<wire::PlanBatch>();
}

// How far an honest sender has come.
enum class Phase {
  kNothing,
  kAnnounced,
  kPlanned,
  kManifestEnded,
  kPackSent,
  kChunkSent,
  kChunksSent,
  kFileEnded,
  kStreamsEnded,
  kDataEnded,
  kSummaryHeard,
  kDone,
};

Task<void> play_until(ScriptedPeer* peer, Phase phase) {
  if (phase == Phase::kNothing) co_return;
  peer->say(batch_of({file_entry(kSmall, 0, "small", small_contents().size()),
                      file_entry(kLarge, 0, "large", kLargeBytes)}));
  if (phase == Phase::kAnnounced) co_return;
  (void)co_await peer->hear_next<wire::PlanBatch>();
  if (phase == Phase::kPlanned) co_return;
  peer->say(wire::ManifestEnd{.entries = 2});
  if (phase == Phase::kManifestEnded) co_return;
  peer->send_pack(0, {{kSmall, small_contents()}});
  if (phase == Phase::kPackSent) co_return;
  send_large_chunk(peer, 0);
  if (phase == Phase::kChunkSent) co_return;
  send_large_chunk(peer, 1);
  send_large_chunk(peer, 2);
  if (phase == Phase::kChunksSent) co_return;
  peer->say(large_end());
  if (phase == Phase::kFileEnded) co_return;
  peer->end_streams();
  if (phase == Phase::kStreamsEnded) co_return;
  peer->say(wire::DataEnd{});
  if (phase == Phase::kDataEnded) co_return;
  (void)co_await peer->hear_next<wire::Summary>();
  if (phase == Phase::kSummaryHeard) co_return;
  peer->say(wire::Summary{});
}

class HostileSender : public OnEachEngine {
 protected:
  void SetUp() override {
    OnEachEngine::SetUp();
    directory_.make_directory("outside");
    directory_.write("outside/kept", "kept");
  }

  HalfOutcome receive(Script script, const std::string& expected = {},
                      wire::EntryType type = wire::EntryType::kRegular) {
    // Each run finds an empty target.
    const std::string name = "target" + std::to_string(++runs_);
    directory_.make_directory(name);
    target_ = directory_.path(name);
    SessionHarness harness(GetParam());
    harness.parameters.timeout = timeout_;
    HalfOutcome outcome = harness.receive_from(script, target_, expected, type);
    told_ = harness.told_abort();
    return outcome;
  }

  // Nothing but whole files, and no trace of the run.
  void expect_only_whole_files() {
    for (const auto& [path, contents] : list_files(target_)) {
      const bool whole = (path == "small" && contents == small_contents()) ||
                         (path == "large" && contents == large_contents());
      EXPECT_TRUE(whole) << path << ", " << contents.size() << " bytes";
    }
    EXPECT_FALSE(list_tree(target_).contains(".fgsync"));
    const std::map<std::string, std::string> outside = {{"kept", "kept"}};
    EXPECT_EQ(list_files(directory_.path("outside")), outside);
  }

  void expect_refusal(const char* what, Script script, ErrorCode code,
                      const std::string& expected = {},
                      wire::EntryType type = wire::EntryType::kRegular) {
    SCOPED_TRACE(what);
    const HalfOutcome outcome = receive(script, expected, type);
    EXPECT_EQ(outcome.status.code(), code) << outcome.status.message();
    ASSERT_TRUE(told_.has_value());
    EXPECT_EQ(told_->error.code, code);
    expect_only_whole_files();
  }

  const TemporaryDirectory directory_;
  std::string target_;
  int runs_ = 0;
  std::chrono::milliseconds timeout_{0};
  std::optional<wire::Abort> told_;
};

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

TEST_P(HostileSender, ChunksThatWereNotAskedForAreRefused) {
  expect_refusal(
      "of an unknown file",
      [](ScriptedPeer* peer) -> Task<void> {
        peer->send_chunk(0, 7, 0, contents_of(kChunk, 1));
        co_return;
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "of a directory",
      [](ScriptedPeer* peer) -> Task<void> {
        peer->say(batch_of({directory_entry(kLarge, 0, "directory")}));
        (void)co_await peer->hear_next<wire::PlanBatch>();
        send_large_chunk(peer, 0);
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "of a file that travels in a pack",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->send_chunk(0, kSmall, 0, small_contents());
      },
      ErrorCode::kProtocolError);
}

TEST_P(HostileSender, ChunksThatAreNotTheFilesAreRefused) {
  expect_refusal(
      "between two chunks",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->send_chunk(0, kLarge, 4096, contents_of(kChunk, 1));
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "behind the end",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->send_chunk(0, kLarge, 3 * kChunk, contents_of(kChunk, 1));
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "shorter than a chunk",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->send_chunk(0, kLarge, 0, contents_of(1000, 1));
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "longer than the rest",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->send_chunk(0, kLarge, 2 * kChunk, contents_of(kChunk, 1));
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "twice",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        send_large_chunk(peer, 0);
        send_large_chunk(peer, 0);
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "after the file was finished",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await play_until(peer, Phase::kFileEnded);
        (void)co_await peer->hear_next<wire::SettledBatch>();
        send_large_chunk(peer, 0);
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "damaged",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->send_chunk(0, kLarge, 0, contents_of(kChunk, 1), /*right_checksum=*/false);
      },
      ErrorCode::kChecksumMismatch);
}

TEST_P(HostileSender, PackedFilesThatWereNotAskedForAreRefused) {
  expect_refusal(
      "unknown",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->send_pack(0, {{kSmall, small_contents()}, {99, "never announced"}});
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "one that travels in chunks",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->send_pack(0, {{kLarge, "much shorter"}});
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "of another size",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->send_pack(0, {{kSmall, small_contents() + "x"}});
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "twice",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->send_pack(0, {{kSmall, small_contents()}, {kSmall, small_contents()}});
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "damaged",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        PackedFile damaged{kSmall, small_contents()};
        damaged.right_checksum = false;
        peer->send_pack(0, {damaged});
      },
      ErrorCode::kChecksumMismatch);
}

TEST_P(HostileSender, FramesThatAreNoneAreRefused) {
  expect_refusal(
      "a pack that is cut off",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->send_frame(0, {.type = wire::FrameType::kPack, .count = 2}, bytes_of("short"));
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "a pack with bytes left over",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        std::vector<std::byte> payload(wire::kPackedHeaderBytes + 1);
        wire::PackedEntry withdrawn;
        withdrawn.entry = kSmall;
        withdrawn.status = wire::PackedStatus::kWithdrawn;
        wire::encode_packed_header(withdrawn, payload);
        peer->send_frame(0, {.type = wire::FrameType::kPack, .count = 1}, std::move(payload));
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "a chunk without room for its checksum",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->send_frame(0, {.type = wire::FrameType::kChunk, .entry = kLarge}, bytes_of("x"));
      },
      ErrorCode::kProtocolError);
}

TEST_P(HostileSender, EndsOfFilesThatAreNotTheirsAreRefused) {
  expect_refusal(
      "of an unknown file",
      [](ScriptedPeer* peer) -> Task<void> {
        wire::FileEnd end = large_end();
        end.entry = 77;
        peer->say(end);
        co_return;
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "of a file that travels in a pack",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        wire::FileEnd end = large_end();
        end.entry = kSmall;
        peer->say(end);
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "twice",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce(peer);
        peer->say(large_end());
        peer->say(large_end());
      },
      ErrorCode::kProtocolError);
  expect_refusal(
      "with another digest",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await play_until(peer, Phase::kChunksSent);
        wire::FileEnd end = large_end();
        end.digest.bytes[5] ^= std::byte{1};
        peer->say(end);
      },
      ErrorCode::kProtocolError);
}

TEST_P(HostileSender, AWithdrawnFileIsNeverPublished) {
  const HalfOutcome outcome = receive([](ScriptedPeer* peer) -> Task<void> {
    co_await play_until(peer, Phase::kManifestEnded);
    PackedFile withdrawn{kSmall, ""};
    withdrawn.status = wire::PackedStatus::kWithdrawn;
    peer->send_pack(0, {withdrawn});
    send_large_chunk(peer, 0);
    wire::FileEnd end;
    end.entry = kLarge;
    peer->say(end);
    send_large_chunk(peer, 1);
    peer->end_streams();
    peer->say(wire::DataEnd{});
    (void)co_await peer->hear_next<wire::Summary>();
    peer->say(wire::Summary{});
  });
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_TRUE(list_files(target_).empty());
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

TEST_P(HostileSender, OneDataStreamThatBreaksEndsTheSession) {
  const HalfOutcome outcome = receive([](ScriptedPeer* peer) -> Task<void> {
    co_await announce(peer);
    peer->hang_up_stream(1);
  });
  EXPECT_EQ(outcome.status.code(), ErrorCode::kConnectionLost);
  expect_only_whole_files();
}

}  // namespace
}  // namespace fgsync::transfer
