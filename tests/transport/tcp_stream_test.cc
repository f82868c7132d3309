#include "transport/tcp_stream.h"

#include <atomic>

#include "transport/tcp_fixture.h"

namespace fgsync::transport {
namespace {

class TcpStreamTest : public TcpTest {};

INSTANTIATE_TEST_SUITE_P(Engines, TcpStreamTest,
                         testing::Values(TransportCase{IoEngine::kPosix, Cipher::kNone},
                                         TransportCase{IoEngine::kPosix, Cipher::kAes128Gcm},
                                         TransportCase{IoEngine::kPosix, Cipher::kChaCha20Poly1305},
                                         TransportCase{IoEngine::kUring, Cipher::kNone},
                                         TransportCase{IoEngine::kUring, Cipher::kAes128Gcm},
                                         TransportCase{IoEngine::kUring, Cipher::kAes256Gcm}),
                         transport_case_text);

// What a test's coroutines share; outlives them all.
struct Roads {
  io::Io& control;
  io::Io& left_io;
  io::Io& right_io;
  Cipher cipher;
  StageMeter& meter;
  BufferPool& left_pool;
  BufferPool& right_pool;
  std::uint64_t bytes_per_key = kBytesPerKey;
  std::unique_ptr<Stream> left = nullptr;
  std::unique_ptr<Stream> right = nullptr;
};

io::Task<void> open_roads(Roads& roads) {
  SocketPair pair;
  co_await connect_pair(roads.control, pair);
  roads.left = make_tcp_stream(roads.left_io,
                               make_parts(std::move(pair.first), roads.cipher,
                                          Direction::kFromInitiator, roads.bytes_per_key),
                               roads.left_pool, roads.meter);
  roads.right = make_tcp_stream(roads.right_io,
                                make_parts(std::move(pair.second), roads.cipher,
                                           Direction::kToInitiator, roads.bytes_per_key),
                                roads.right_pool, roads.meter);
}

// Around the sizes of the pieces (256 KiB sealed, 1 MiB plain) and of a slot.
constexpr std::size_t kSizes[] = {0,
                                  1,
                                  36,
                                  65536,
                                  256 * limits::kKiB - 1,
                                  256 * limits::kKiB,
                                  256 * limits::kKiB + 1,
                                  limits::kMiB,
                                  limits::kMiB + 1,
                                  3 * limits::kMiB,
                                  limits::kChunkBytesDefault + 96};

io::Task<void> send_sizes(Roads& roads) {
  for (const std::size_t size : kSizes) {
    Status sent = co_await send_frame(roads.left_io, *roads.left, roads.left_pool,
                                      make_header(1, unsigned(size & 0xffff)),
                                      pattern(size, std::uint32_t(size)));
    EXPECT_TRUE(sent.ok()) << sent.message();
  }
}

io::Task<void> receive_sizes(Roads& roads) {
  for (const std::size_t size : kSizes) {
    Result<ReceivedFrame> frame = co_await roads.right->receive();
    CO_ASSERT(frame.ok());
    EXPECT_EQ(frame->header, make_header(1, unsigned(size & 0xffff)));
    EXPECT_EQ(payload_of(*frame), pattern(size, std::uint32_t(size)));
    EXPECT_EQ(bool(frame->payload), size > 0);
  }
}

io::Task<void> exchange_sizes(Roads& roads) {
  co_await open_roads(roads);
  io::TaskGroup group;
  group.spawn(roads.left_io, send_sizes(roads));
  group.spawn(roads.right_io, receive_sizes(roads));
  co_await group.join(roads.control);
  std::uint64_t payload_bytes = 0;
  for (const std::size_t size : kSizes) payload_bytes += size;
  const std::uint64_t overhead =
      4 + kFrameHeaderBytes + (roads.cipher == Cipher::kNone ? 0 : kTagBytes);
  const std::uint64_t wire_bytes = payload_bytes + std::size(kSizes) * overhead;
  EXPECT_EQ(roads.left->wire_bytes(), wire_bytes);
  EXPECT_EQ(roads.right->wire_bytes(), wire_bytes);
  EXPECT_EQ(roads.meter.figures(Stage::kSend).bytes, wire_bytes);
  EXPECT_EQ(roads.meter.figures(Stage::kReceive).bytes, wire_bytes);
  const std::uint64_t sealed_bytes = roads.cipher == Cipher::kNone ? 0 : payload_bytes;
  EXPECT_EQ(roads.meter.figures(Stage::kEncrypt).bytes, sealed_bytes);
  EXPECT_EQ(roads.meter.figures(Stage::kDecrypt).bytes, sealed_bytes);
}

TEST_P(TcpStreamTest, FramesOfAllSizesArriveAndEveryByteIsCounted) {
  auto left = make_pool(2);
  auto right = make_pool(2);
  Roads roads{control(), worker(0), worker(1), cipher(), *meter_, *left, *right};
  run(exchange_sizes(roads));
  EXPECT_EQ(left->free_count(), 2u);
  EXPECT_EQ(right->free_count(), 2u);
}

constexpr unsigned kSenders = 8;
constexpr unsigned kFramesEach = 20;

std::size_t size_of_frame(unsigned sender, unsigned number) {
  const std::size_t bound = number % 5 == 0 ? 600'000 : 40'000;  // several pieces, or one
  return (sender * 7919 + number * 104729) % bound;
}

io::Task<void> send_many(io::Io& io, Stream& stream, BufferPool& pool, unsigned sender) {
  for (unsigned number = 0; number < kFramesEach; ++number) {
    Status sent =
        co_await send_frame(io, stream, pool, make_header(sender, number),
                            pattern(size_of_frame(sender, number), sender * 1000 + number));
    EXPECT_TRUE(sent.ok()) << sent.message();
  }
}

io::Task<void> receive_many(Stream& stream) {
  unsigned next[kSenders] = {};
  for (unsigned i = 0; i < kSenders * kFramesEach; ++i) {
    Result<ReceivedFrame> frame = co_await stream.receive();
    CO_ASSERT(frame.ok());
    const unsigned sender = std::to_integer<unsigned>(frame->header[0]);
    CO_ASSERT(sender < kSenders);
    const unsigned number = next[sender]++;
    EXPECT_EQ(frame->header, make_header(sender, number));
    EXPECT_EQ(payload_of(*frame), pattern(size_of_frame(sender, number), sender * 1000 + number));
  }
}

io::Task<void> exchange_many(Roads& roads) {
  co_await open_roads(roads);
  io::TaskGroup group;
  group.spawn(roads.right_io, receive_many(*roads.right));
  group.spawn(roads.left_io, receive_many(*roads.left));
  for (unsigned sender = 0; sender < kSenders; ++sender) {
    group.spawn(roads.left_io, send_many(roads.left_io, *roads.left, roads.left_pool, sender));
    group.spawn(roads.right_io, send_many(roads.right_io, *roads.right, roads.right_pool, sender));
  }
  co_await group.join(roads.control);
}

// A pool's waiters are served in turn, so a receiver that shares the senders' pool may wait behind
// senders that wait for it; the senders' pools are therefore large enough for all of them.
TEST_P(TcpStreamTest, ManySendersInBothDirectionsEachKeepTheirOrder) {
  auto left = make_pool(kSenders + 2);
  auto right = make_pool(kSenders + 2);
  Roads roads{control(), worker(0), worker(1), cipher(), *meter_, *left, *right};
  roads.bytes_per_key = 1'000'000;  // so that keys change underway
  run(exchange_many(roads));
}

io::Task<void> receive_second(Roads& roads, std::atomic<bool>& arrived) {
  Result<ReceivedFrame> frame = co_await roads.right->receive();
  arrived = true;
  CO_ASSERT(frame.ok());
  EXPECT_EQ(payload_of(*frame), pattern(1000, 2));
}

io::Task<void> wait_for_the_slot(Roads& roads) {
  co_await open_roads(roads);
  for (const unsigned number : {1u, 2u}) {
    Status sent = co_await send_frame(roads.control, *roads.left, roads.left_pool,
                                      make_header(0, number), pattern(1000, number));
    CO_ASSERT(sent.ok());
  }
  Result<ReceivedFrame> first = co_await roads.right->receive();
  CO_ASSERT(first.ok());
  EXPECT_EQ(payload_of(*first), pattern(1000, 1));
  EXPECT_EQ(roads.right_pool.free_count(), 0u);
  std::atomic<bool> arrived = false;
  io::TaskGroup group;
  group.spawn(roads.control, receive_second(roads, arrived));
  // The header of the second frame is taken, its payload has to wait.
  const std::uint64_t header_bytes = 4 + kFrameHeaderBytes;
  const std::uint64_t first_bytes = roads.left->wire_bytes() / 2;
  while (roads.right->wire_bytes() < first_bytes + header_bytes) {
    co_await io::resume_on(roads.control);
  }
  for (int turn = 0; turn < 100; ++turn) co_await io::resume_on(roads.control);
  EXPECT_FALSE(arrived);
  first->payload.release();
  co_await group.join(roads.control);
  EXPECT_TRUE(arrived);
}

TEST_P(TcpStreamTest, FrameWaitsForTheOnlySlotOfThePool) {
  auto left = make_pool(2);
  auto right = make_pool(1);
  Roads roads{control(), control(), control(), cipher(), *meter_, *left, *right};
  run(wait_for_the_slot(roads));
  EXPECT_EQ(right->free_count(), 1u);
}

io::Task<void> receive_one(Stream& stream, io::Event& begun, Status& status) {
  begun.set();
  Result<ReceivedFrame> frame = co_await stream.receive();
  status = frame.status();
}

io::Task<void> shut_down_from_elsewhere(Roads& roads) {
  co_await open_roads(roads);
  io::Event left_begun;
  io::Event right_begun;
  Status left_status;
  Status right_status;
  io::TaskGroup group;
  group.spawn(roads.left_io, receive_one(*roads.left, left_begun, left_status));
  group.spawn(roads.right_io, receive_one(*roads.right, right_begun, right_status));
  co_await left_begun.wait(roads.control);
  co_await right_begun.wait(roads.control);
  roads.left->shutdown();
  co_await group.join(roads.control);
  EXPECT_EQ(left_status.code(), ErrorCode::kConnectionLost);
  EXPECT_EQ(left_status.message(), "the stream was shut down");
  EXPECT_EQ(right_status.code(), ErrorCode::kConnectionLost);
  EXPECT_EQ(right_status.message(), "the peer closed the stream");
}

TEST_P(TcpStreamTest, ShutdownFromAnotherThreadEndsCallsInFlight) {
  auto left = make_pool(1);
  auto right = make_pool(1);
  Roads roads{control(), worker(0), worker(1), cipher(), *meter_, *left, *right};
  run(shut_down_from_elsewhere(roads));
}

io::Task<void> use_after_shutdown(Roads& roads) {
  co_await open_roads(roads);
  roads.left->shutdown();
  Status sent = co_await send_frame(roads.control, *roads.left, roads.left_pool, make_header(0, 0),
                                    pattern(100, 1));
  EXPECT_EQ(sent.code(), ErrorCode::kConnectionLost);
  Result<ReceivedFrame> received = co_await roads.left->receive();
  EXPECT_EQ(received.status().code(), ErrorCode::kConnectionLost);
  EXPECT_EQ(roads.left_pool.free_count(), 1u);
  EXPECT_EQ(roads.left->wire_bytes(), 0u);
}

TEST_P(TcpStreamTest, CallsAfterShutdownFailAtOnce) {
  auto left = make_pool(1);
  auto right = make_pool(1);
  Roads roads{control(), control(), control(), cipher(), *meter_, *left, *right};
  run(use_after_shutdown(roads));
}

}  // namespace
}  // namespace fgsync::transport
