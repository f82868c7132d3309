// A TCP stream against a peer that does not play by the rules: the bytes are put on the wire by the
// test.
#include <algorithm>

#include "transport/tcp_fixture.h"

namespace fgsync::transport {
namespace {

class TcpStreamAttackTest : public TcpTest {};

INSTANTIATE_TEST_SUITE_P(Engines, TcpStreamAttackTest,
                         testing::Values(TransportCase{IoEngine::kPosix, Cipher::kNone},
                                         TransportCase{IoEngine::kPosix, Cipher::kAes128Gcm},
                                         TransportCase{IoEngine::kUring, Cipher::kNone},
                                         TransportCase{IoEngine::kUring, Cipher::kAes128Gcm}),
                         transport_case_text);

class SealedTcpAttackTest : public TcpTest {};

INSTANTIATE_TEST_SUITE_P(Engines, SealedTcpAttackTest,
                         testing::Values(TransportCase{IoEngine::kPosix, Cipher::kAes128Gcm},
                                         TransportCase{IoEngine::kPosix, Cipher::kChaCha20Poly1305},
                                         TransportCase{IoEngine::kUring, Cipher::kAes128Gcm}),
                         transport_case_text);

struct Scene {
  io::Io& io;
  Cipher cipher;
  StageMeter& meter;
  BufferPool& pool;
};

constexpr std::size_t kHeadBytes = 4 + kFrameHeaderBytes;

Bytes head_of(std::uint32_t length, const FrameHeaderBytes& header) {
  Bytes bytes(kHeadBytes);
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = std::byte(length >> (8 * i));
  std::copy(header.begin(), header.end(), bytes.begin() + 4);
  return bytes;
}

// The wire bytes of `count` frames of 300 bytes each, as an honest sender makes them.
io::Task<void> record_frames(Scene& scene, unsigned count, std::vector<Bytes>& frames) {
  SocketPair pair;
  co_await connect_pair(scene.io, pair);
  auto sender = make_tcp_stream(
      scene.io, make_parts(std::move(pair.first), scene.cipher, Direction::kFromInitiator),
      scene.pool, scene.meter);
  const std::size_t tag_bytes = scene.cipher == Cipher::kNone ? 0 : kTagBytes;
  for (unsigned number = 0; number < count; ++number) {
    Status sent = co_await send_frame(scene.io, *sender, scene.pool, make_header(0, number),
                                      pattern(300, number));
    CO_ASSERT(sent.ok());
    Bytes frame(kHeadBytes + 300 + tag_bytes);
    Status received = co_await io::receive_exactly(scene.io, pair.second, frame);
    CO_ASSERT(received.ok());
    frames.push_back(std::move(frame));
  }
}

// What a receiver says to each of the frames, and then to the end of the connection.
io::Task<void> play_frames(Scene& scene, const std::vector<Bytes>& frames,
                           std::vector<Status>& outcomes) {
  SocketPair pair;
  co_await connect_pair(scene.io, pair);
  auto receiver = make_tcp_stream(
      scene.io, make_parts(std::move(pair.first), scene.cipher, Direction::kToInitiator),
      scene.pool, scene.meter);
  for (const Bytes& frame : frames) {
    Status sent = co_await io::send_all(scene.io, pair.second, frame);
    CO_ASSERT(sent.ok());
  }
  pair.second.reset();
  for (std::size_t i = 0; i <= frames.size(); ++i) {
    Result<ReceivedFrame> received = co_await receiver->receive();
    outcomes.push_back(received.status());
  }
}

io::Task<void> wire_format(Scene& scene) {
  std::vector<Bytes> frames;
  co_await record_frames(scene, 1, frames);
  CO_ASSERT(frames.size() == 1);
  const Bytes head(frames[0].begin(), frames[0].begin() + kHeadBytes);
  EXPECT_EQ(head, head_of(300, make_header(0, 0)));
  const Bytes payload(frames[0].begin() + kHeadBytes, frames[0].begin() + kHeadBytes + 300);
  EXPECT_EQ(payload == pattern(300, 0), scene.cipher == Cipher::kNone);
}

TEST_P(TcpStreamAttackTest, WireBytesAreLengthHeaderPayloadAndTag) {
  auto pool = make_pool(2, 4096);
  Scene scene{control(), cipher(), *meter_, *pool};
  run(wire_format(scene));
}

io::Task<void> end_inside_and_between(Scene& scene) {
  std::vector<Bytes> frames;
  co_await record_frames(scene, 2, frames);
  CO_ASSERT(frames.size() == 2);
  std::vector<Status> between;
  co_await play_frames(scene, frames, between);
  CO_ASSERT(between.size() == 3);
  EXPECT_TRUE(between[0].ok() && between[1].ok());
  EXPECT_EQ(between[2].code(), ErrorCode::kConnectionLost);
  EXPECT_EQ(between[2].message(), "the peer closed the stream");
  for (const std::size_t kept :
       {std::size_t{1}, kHeadBytes - 1, kHeadBytes, kHeadBytes + 1, frames[1].size() - 1}) {
    std::vector<Bytes> cut = frames;
    cut[1].resize(kept);
    std::vector<Status> inside;
    co_await play_frames(scene, cut, inside);
    CO_ASSERT(inside.size() == 3);
    EXPECT_TRUE(inside[0].ok());
    EXPECT_EQ(inside[1].code(), ErrorCode::kConnectionLost);
    EXPECT_EQ(inside[1].message().rfind("inside a frame", 0), 0u) << inside[1].message();
  }
}

TEST_P(TcpStreamAttackTest, EndBetweenFramesAndEndInsideAFrameAreToldApart) {
  auto pool = make_pool(2, 4096);
  Scene scene{control(), cipher(), *meter_, *pool};
  run(end_inside_and_between(scene));
  EXPECT_EQ(pool->free_count(), 2u);
}

io::Task<void> announce(Scene& scene, std::uint32_t length, ErrorCode& code) {
  SocketPair pair;
  co_await connect_pair(scene.io, pair);
  auto receiver = make_tcp_stream(
      scene.io, make_parts(std::move(pair.first), scene.cipher, Direction::kToInitiator),
      scene.pool, scene.meter);
  const Bytes head = head_of(length, make_header(0, 0));
  Status sent = co_await io::send_all(scene.io, pair.second, head);
  CO_ASSERT(sent.ok());
  Result<ReceivedFrame> received = co_await receiver->receive();
  code = received.status().code();
  Result<ReceivedFrame> again = co_await receiver->receive();
  EXPECT_EQ(again.status().code(), code);
  Status later = co_await receiver->send(make_header(0, 0), Buffer());
  EXPECT_EQ(later.code(), code);
}

// No slot is free: a receiver that wanted one before it looks at the length would wait for ever.
TEST_P(TcpStreamAttackTest, OversizedLengthIsRefusedBeforeASlotIsTaken) {
  const std::size_t slot_bytes = 4096;
  const std::size_t tag_bytes = cipher() == Cipher::kNone ? 0 : kTagBytes;
  auto pool = make_pool(1, slot_bytes);
  auto held = pool->try_acquire();
  ASSERT_TRUE(held);
  Scene scene{control(), cipher(), *meter_, *pool};
  ErrorCode code = ErrorCode::kOk;
  run(announce(scene, std::uint32_t(slot_bytes - tag_bytes + 1), code));
  EXPECT_EQ(code, ErrorCode::kProtocolError);
}

TEST_P(TcpStreamAttackTest, LargestLengthThereIsIsRefused) {
  auto pool = make_pool(1, 4096);
  Scene scene{control(), cipher(), *meter_, *pool};
  ErrorCode code = ErrorCode::kOk;
  run(announce(scene, 0xffffffffu, code));
  EXPECT_EQ(code, ErrorCode::kProtocolError);
}

io::Task<void> expect_second_refused(Scene& scene, std::vector<Bytes> frames) {
  std::vector<Status> outcomes;
  co_await play_frames(scene, frames, outcomes);
  CO_ASSERT(outcomes.size() >= 2);
  EXPECT_TRUE(outcomes[0].ok());
  EXPECT_EQ(outcomes[1].code(), ErrorCode::kProtocolError) << outcomes[1].message();
}

io::Task<void> tamper(Scene& scene) {
  std::vector<Bytes> honest;
  co_await record_frames(scene, 2, honest);
  CO_ASSERT(honest.size() == 2);
  const std::size_t positions[] = {
      4, kHeadBytes - 1, kHeadBytes, kHeadBytes + 299, kHeadBytes + 300, honest[1].size() - 1};
  for (const std::size_t position : positions) {
    std::vector<Bytes> changed = honest;
    changed[1][position] ^= std::byte{0x10};
    co_await expect_second_refused(scene, changed);
  }
  // A shorter payload: the tag is then looked for too early.
  std::vector<Bytes> shorter = honest;
  shorter[1][0] ^= std::byte{0x04};
  co_await expect_second_refused(scene, shorter);
  EXPECT_EQ(scene.pool.free_count(), scene.pool.slot_count());
}

TEST_P(SealedTcpAttackTest, FlippedBitInLengthHeaderPayloadOrTagIsRefused) {
  auto pool = make_pool(2, 4096);
  Scene scene{control(), cipher(), *meter_, *pool};
  run(tamper(scene));
}

io::Task<void> reorder(Scene& scene) {
  std::vector<Bytes> honest;
  co_await record_frames(scene, 3, honest);
  CO_ASSERT(honest.size() == 3);
  const std::vector<Bytes> replayed = {honest[0], honest[0]};
  co_await expect_second_refused(scene, replayed);
  const std::vector<Bytes> dropped = {honest[0], honest[2]};
  co_await expect_second_refused(scene, dropped);
  const std::vector<Bytes> swapped = {honest[0], honest[2], honest[1]};
  co_await expect_second_refused(scene, swapped);
}

TEST_P(SealedTcpAttackTest, ReplayedDroppedAndSwappedFramesAreRefused) {
  auto pool = make_pool(2, 4096);
  Scene scene{control(), cipher(), *meter_, *pool};
  run(reorder(scene));
}

}  // namespace
}  // namespace fgsync::transport
