// A data stream over the loopback interface: frames of a chunk each from one worker to another, by
// either engine, plain and sealed.
#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <utility>

#include "base/limits.h"
#include "engines.h"
#include "io/sync.h"
#include "memory/buffer_pool.h"
#include "transport/stage_meter.h"
#include "transport/tcp_stream.h"

namespace fgsync::bench {
namespace {

using transport::Direction;

constexpr std::size_t kFrames = 8;
constexpr std::size_t kFrameBytes = limits::kChunkBytesDefault;
constexpr std::size_t kSlotBytes = kFrameBytes + limits::kSlotSpareBytes;

std::unique_ptr<transport::FrameCipher> make_cipher(Cipher cipher, Direction direction) {
  if (cipher == Cipher::kNone) return nullptr;
  constexpr std::array<std::byte, 32> kNoSecret{};
  auto made =
      transport::FrameCipher::create(cipher, transport::SessionSecret(kNoSecret), 1, direction, 0);
  require(made.ok(), "making a cipher");
  return std::move(*made);
}

// One end of a connection: its worker, its pool and its stream.
struct End {
  io::Io& io;
  std::unique_ptr<BufferPool> pool;
  std::unique_ptr<transport::Stream> stream;

  explicit End(io::Io& worker) : io(worker) {
    auto made = BufferPool::create(kSlotBytes, 4);
    require(made.ok(), "making a pool");
    pool = std::move(*made);
  }
  void make_stream(io::Socket socket, Cipher cipher, Direction outgoing, Direction incoming,
                   transport::StageMeter& meter) {
    transport::TcpStreamParts parts{std::move(socket), make_cipher(cipher, outgoing),
                                    make_cipher(cipher, incoming)};
    stream = transport::make_tcp_stream(io, std::move(parts), *pool, meter);
  }
};

struct Connection {
  io::Socket near, far;
};

io::Task<void> connect_both(io::Io& io, Connection& connection) {
  io::Network& network = io.environment().network();
  auto listener = network.listen(*io::SocketAddress::parse("127.0.0.1", 0));
  require(listener.ok(), "listening");
  const auto address = network.local_address(*listener);
  auto near = network.create(*address, std::nullopt);
  require(near.ok(), "making a socket");
  const Status connected = co_await io::connect(io, *near, *address);
  require(connected.ok(), "connecting");
  auto far = co_await io::accept(io, *listener);
  require(far.ok(), "accepting");
  connection = {std::move(*near), std::move(*far)};
}

// Each frame says its number in its header and at both ends of its payload.
io::Task<void> send_frames(End& end) {
  for (std::size_t number = 0; number < kFrames; ++number) {
    Buffer buffer = co_await io::AcquireBuffer(*end.pool, end.io);
    buffer.resize(kFrameBytes);
    buffer.bytes().front() = buffer.bytes().back() = std::byte(number + 1);
    transport::FrameHeaderBytes header{};
    header[0] = std::byte(number);
    const Status sent = co_await end.stream->send(header, std::move(buffer));
    require(sent.ok(), "sending");
  }
}

io::Task<void> receive_frames(End& end) {
  for (std::size_t number = 0; number < kFrames; ++number) {
    const auto frame = co_await end.stream->receive();
    require(frame.ok() && frame->header[0] == std::byte(number), "a frame in its order");
    const auto bytes = frame->payload.bytes();
    require(bytes.size() == kFrameBytes && bytes.front() == std::byte(number + 1) &&
                bytes.back() == std::byte(number + 1),
            "its payload");
  }
}

io::Task<void> measure(benchmark::State& state, io::Runtime& runtime, Cipher cipher) {
  transport::StageMeter meter(runtime.environment());
  End sender(runtime.worker(0)), receiver(runtime.worker(1));
  Connection connection;
  co_await connect_both(runtime.control(), connection);
  sender.make_stream(std::move(connection.near), cipher, Direction::kFromInitiator,
                     Direction::kToInitiator, meter);
  receiver.make_stream(std::move(connection.far), cipher, Direction::kToInitiator,
                       Direction::kFromInitiator, meter);
  for (auto _ : state) {
    io::TaskGroup group;
    group.spawn(sender.io, send_frames(sender));
    group.spawn(receiver.io, receive_frames(receiver));
    co_await group.join(runtime.control());
  }
}

void stream(benchmark::State& state, IoEngine engine, Cipher cipher) {
  const auto runtime = make_runtime(state, engine);
  if (!runtime) return;
  runtime->run(measure(state, *runtime, cipher));
  state.SetBytesProcessed(state.iterations() * std::int64_t(kFrames * kFrameBytes));
}
BENCHMARK_CAPTURE(stream, uring_plain, IoEngine::kUring, Cipher::kNone)->UseRealTime();
BENCHMARK_CAPTURE(stream, uring_sealed, IoEngine::kUring, Cipher::kAes128Gcm)->UseRealTime();
BENCHMARK_CAPTURE(stream, posix_plain, IoEngine::kPosix, Cipher::kNone)->UseRealTime();
BENCHMARK_CAPTURE(stream, posix_sealed, IoEngine::kPosix, Cipher::kAes128Gcm)->UseRealTime();

}  // namespace
}  // namespace fgsync::bench
