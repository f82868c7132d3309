#include "transport/memory_stream.h"

#include <cstring>

#include "base/limits.h"
#include "io/sync.h"
#include "transport/engine_fixture.h"

namespace fgsync::transport {
namespace {

std::unique_ptr<BufferPool> make_pool(std::size_t slots) {
  auto pool = BufferPool::create(4096, slots);
  EXPECT_TRUE(pool.ok());
  return std::move(*pool);
}

FrameHeaderBytes header(unsigned number) {
  FrameHeaderBytes bytes{};
  bytes[0] = std::byte(number);
  return bytes;
}

class MemoryStreamTest : public EngineTest {};
FGSYNC_ON_BOTH_ENGINES(MemoryStreamTest);

io::Task<void> send_numbered(io::Io& io, Stream& stream, BufferPool& pool, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    Buffer buffer = co_await io::AcquireBuffer(pool, io);
    buffer.resize(100);
    std::memset(buffer.data(), int(i), 100);
    Status sent = co_await stream.send(header(i), std::move(buffer));
    EXPECT_TRUE(sent.ok());
  }
}

io::Task<void> receive_numbered(Stream& stream, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    Result<ReceivedFrame> frame = co_await stream.receive();
    CO_ASSERT(frame.ok());
    EXPECT_EQ(frame->header, header(i));
    CO_ASSERT(frame->payload.size() == 100);
    EXPECT_EQ(frame->payload.bytes()[99], std::byte(i));
  }
}

io::Task<void> cross_workers(io::Io& control, io::Io& first, io::Io& second, BufferPool& pool) {
  auto [left, right] = make_memory_streams(first, second);
  io::TaskGroup group;
  group.spawn(first, send_numbered(first, *left, pool, 200));
  group.spawn(second, receive_numbered(*right, 200));
  group.spawn(second, send_numbered(second, *right, pool, 200));
  group.spawn(first, receive_numbered(*left, 200));
  co_await group.join(control);
  EXPECT_EQ(left->wire_bytes(), 2u * 200 * (kFrameHeaderBytes + 100));
}

TEST_P(MemoryStreamTest, FramesCrossWorkersInOrderWithFewSlots) {
  auto pool = make_pool(3);
  run(cross_workers(control(), worker(0), worker(1), *pool));
  EXPECT_EQ(pool->free_count(), 3u);
}

io::Task<void> shut_down_with_frames_queued(io::Io& io, BufferPool& pool) {
  auto [left, right] = make_memory_streams(io, io);
  co_await send_numbered(io, *left, pool, 2);
  co_await send_numbered(io, *right, pool, 3);
  EXPECT_EQ(pool.free_count(), 3u);
  left->shutdown();
  EXPECT_EQ(pool.free_count(), 6u);  // what was on its way to the end that is shut down
  Result<ReceivedFrame> none = co_await left->receive();
  EXPECT_EQ(none.status().code(), ErrorCode::kConnectionLost);
  co_await receive_numbered(*right, 2);
  Result<ReceivedFrame> end = co_await right->receive();
  EXPECT_EQ(end.status().code(), ErrorCode::kConnectionLost);
  for (Stream* stream : {left.get(), right.get()}) {
    Status sent = co_await stream->send(header(0), Buffer());
    EXPECT_EQ(sent.code(), ErrorCode::kConnectionLost);
  }
}

TEST_P(MemoryStreamTest, ShutdownLetsThePeerHaveWhatWasSentAndDropsTheRest) {
  auto pool = make_pool(8);
  run(shut_down_with_frames_queued(control(), *pool));
  EXPECT_EQ(pool->free_count(), 8u);
}

io::Task<void> destroy_with_frames_queued(io::Io& io, BufferPool& pool) {
  auto [left, right] = make_memory_streams(io, io);
  co_await send_numbered(io, *left, pool, 2);
  co_await send_numbered(io, *right, pool, 2);
}

TEST_P(MemoryStreamTest, BuffersOfDestroyedStreamsReturnToThePool) {
  auto pool = make_pool(8);
  run(destroy_with_frames_queued(control(), *pool));
  EXPECT_EQ(pool->free_count(), 8u);
}

io::Task<void> receive_one(Stream& stream, io::Event& begun, ErrorCode& code) {
  begun.set();
  Result<ReceivedFrame> frame = co_await stream.receive();
  code = frame.status().code();
}

io::Task<void> shut_down_from_elsewhere(io::Io& control, io::Io& first, io::Io& second) {
  auto [left, right] = make_memory_streams(first, second);
  io::Event left_begun;
  io::Event right_begun;
  ErrorCode left_code = ErrorCode::kOk;
  ErrorCode right_code = ErrorCode::kOk;
  io::TaskGroup group;
  group.spawn(first, receive_one(*left, left_begun, left_code));
  group.spawn(second, receive_one(*right, right_begun, right_code));
  co_await left_begun.wait(control);
  co_await right_begun.wait(control);
  left->shutdown();
  co_await group.join(control);
  EXPECT_EQ(left_code, ErrorCode::kConnectionLost);
  EXPECT_EQ(right_code, ErrorCode::kConnectionLost);
}

TEST_P(MemoryStreamTest, ShutdownFromAnotherThreadEndsCallsInFlightOnBothSides) {
  run(shut_down_from_elsewhere(control(), worker(0), worker(1)));
}

io::Task<void> exchange_messages(io::Io& io) {
  auto [left, right] = make_memory_control_streams(io, io);
  const Bytes longest = pattern(limits::kControlMessageBytesMax, 1);
  Status sent = co_await left->send(longest);
  EXPECT_TRUE(sent.ok());
  Status empty = co_await left->send(Bytes());
  EXPECT_TRUE(empty.ok());
  Status over = co_await left->send(Bytes(limits::kControlMessageBytesMax + 1));
  EXPECT_EQ(over.code(), ErrorCode::kInvalidArgument);
  left.reset();
  Result<Bytes> first = co_await right->receive();
  CO_ASSERT(first.ok());
  EXPECT_EQ(*first, longest);
  Result<Bytes> second = co_await right->receive();
  CO_ASSERT(second.ok());
  EXPECT_TRUE(second->empty());
  Result<Bytes> end = co_await right->receive();
  EXPECT_EQ(end.status().code(), ErrorCode::kConnectionLost);
}

TEST_P(MemoryStreamTest, ControlMessagesArriveWholeUpToTheBound) {
  run(exchange_messages(control()));
}

}  // namespace
}  // namespace fgsync::transport
