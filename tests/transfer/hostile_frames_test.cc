// Data frames, and the ends of files, that break the rules of docs/protocol.md.
#include "transfer/hostile_sender_fixture.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes

class HostileFrames : public HostileSender {};

FGSYNC_TEST_ON_EACH_ENGINE(HostileFrames);

TEST_P(HostileFrames, ChunksThatWereNotAskedForAreRefused) {
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

TEST_P(HostileFrames, ChunksThatAreNotTheFilesAreRefused) {
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

constexpr std::uint64_t kLargeToo = 3;
constexpr std::uint64_t kSmallToo = 4;

Task<void> announce_two_of_a_size(ScriptedPeer* peer) {
  peer->say(batch_of({file_entry(kSmall, 0, "small", small_contents().size()),
                      file_entry(kLarge, 0, "large", kLargeBytes),
                      file_entry(kLargeToo, 0, "large too", kLargeBytes),
                      file_entry(kSmallToo, 0, "small too", small_contents().size())}));
  (void)co_await peer->hear_next<wire::PlanBatch>();
}

// The large file's first chunk in a frame whose header was changed on the way.
void send_first_chunk_as(ScriptedPeer* peer, std::uint64_t entry, std::uint64_t offset) {
  const std::string contents = large_contents().substr(0, kChunk);
  const wire::Checksum bound = wire::bind_checksum(checksum_of_text(contents), kLarge, 0);
  std::vector<std::byte> payload = bytes_of(contents);
  payload.insert(payload.end(), bound.bytes.begin(), bound.bytes.end());
  peer->send_frame(0, {.type = wire::FrameType::kChunk, .entry = entry, .offset = offset},
                   std::move(payload));
}

TEST_P(HostileFrames, BytesThatArriveUnderAnothersHeaderAreNoticed) {
  expect_refusal(
      "another place in the file",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce_two_of_a_size(peer);
        send_first_chunk_as(peer, kLarge, kChunk);
      },
      ErrorCode::kChecksumMismatch);
  expect_refusal(
      "the same place in another file",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce_two_of_a_size(peer);
        send_first_chunk_as(peer, kLargeToo, 0);
      },
      ErrorCode::kChecksumMismatch);
  expect_refusal(
      "another file of a pack",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await announce_two_of_a_size(peer);
        const std::string contents = small_contents();
        wire::PackedEntry entry;
        entry.entry = kSmall;
        entry.checksum = checksum_of_text(contents);
        const std::vector<std::byte> bytes = bytes_of(contents);
        entry.bytes = bytes;
        std::vector<std::byte> payload(wire::kPackedHeaderBytes);
        wire::encode_packed_header(entry, payload);
        payload[0] = std::byte{kSmallToo};  // the number's lowest byte
        payload.insert(payload.end(), bytes.begin(), bytes.end());
        peer->send_frame(0, {.type = wire::FrameType::kPack, .count = 1}, std::move(payload));
      },
      ErrorCode::kChecksumMismatch);
}

TEST_P(HostileFrames, PackedFilesThatWereNotAskedForAreRefused) {
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

TEST_P(HostileFrames, FramesThatAreNoneAreRefused) {
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

TEST_P(HostileFrames, EndsOfFilesThatAreNotTheirsAreRefused) {
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

// What had to be read again for a lost connection may have changed meanwhile.
TEST_P(HostileFrames, AFileMayBeWithdrawnAfterItsEndWhileAChunkIsMissing) {
  const HalfOutcome outcome = receive([](ScriptedPeer* peer) -> Task<void> {
    co_await play_until(peer, Phase::kChunkSent);
    peer->say(large_end());
    wire::FileEnd withdrawn;
    withdrawn.entry = kLarge;
    peer->say(withdrawn);
    peer->end_streams();
    peer->say(wire::DataEnd{});
    (void)co_await peer->hear_next<wire::Summary>();
    peer->say(wire::Summary{});
  });
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  const std::map<std::string, std::string> whole = {{"small", small_contents()}};
  EXPECT_EQ(list_files(target_), whole);
  expect_refusal(
      "of which nothing is missing",
      [](ScriptedPeer* peer) -> Task<void> {
        co_await play_until(peer, Phase::kFileEnded);
        (void)co_await peer->hear_next<wire::SettledBatch>();
        wire::FileEnd end;
        end.entry = kLarge;
        peer->say(end);
      },
      ErrorCode::kProtocolError);
}

TEST_P(HostileFrames, AWithdrawnFileIsNeverPublished) {
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

TEST_P(HostileFrames, OneDataStreamThatBreaksEndsTheSession) {
  const HalfOutcome outcome = receive([](ScriptedPeer* peer) -> Task<void> {
    co_await announce(peer);
    peer->hang_up_stream(1);
  });
  EXPECT_EQ(outcome.status.code(), ErrorCode::kConnectionLost);
  expect_only_whole_files();
}

}  // namespace
}  // namespace fgsync::transfer
