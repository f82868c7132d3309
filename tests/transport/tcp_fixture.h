// Two TCP streams over real loopback sockets, plain or sealed.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/limits.h"
#include "io/sync.h"
#include "memory/buffer_pool.h"
#include "transport/engine_fixture.h"
#include "transport/stage_meter.h"
#include "transport/tcp_stream.h"

namespace fgsync::transport {

inline constexpr std::size_t kPoolSlotBytes = limits::kChunkBytesDefault + limits::kSlotSpareBytes;

inline std::unique_ptr<BufferPool> make_pool(std::size_t slots,
                                             std::size_t slot_bytes = kPoolSlotBytes) {
  auto pool = BufferPool::create(slot_bytes, slots);
  EXPECT_TRUE(pool.ok());
  return std::move(*pool);
}

inline std::unique_ptr<FrameCipher> make_cipher(Cipher cipher, Direction direction,
                                                std::uint64_t bytes_per_key = kBytesPerKey) {
  if (cipher == Cipher::kNone) return nullptr;
  std::array<std::byte, 32> bytes{};
  auto made = FrameCipher::create(cipher, SessionSecret(bytes), 1, direction, 0, bytes_per_key);
  EXPECT_TRUE(made.ok());
  return std::move(*made);
}

// `outgoing` is the direction that this end sends in.
inline TcpStreamParts make_parts(io::Socket socket, Cipher cipher, Direction outgoing,
                                 std::uint64_t bytes_per_key = kBytesPerKey) {
  const Direction incoming =
      outgoing == Direction::kFromInitiator ? Direction::kToInitiator : Direction::kFromInitiator;
  TcpStreamParts parts;
  parts.socket = std::move(socket);
  parts.sealer = make_cipher(cipher, outgoing, bytes_per_key);
  parts.opener = make_cipher(cipher, incoming, bytes_per_key);
  return parts;
}

inline FrameHeaderBytes make_header(unsigned sender, unsigned number) {
  FrameHeaderBytes header{};
  for (std::size_t i = 0; i < header.size(); ++i) header[i] = std::byte(sender * 7 + i);
  header[0] = std::byte(sender);
  header[1] = std::byte(number);
  header[2] = std::byte(number >> 8);
  return header;
}

inline io::Task<Status> send_frame(io::Io& io, Stream& stream, BufferPool& pool,
                                   FrameHeaderBytes header, Bytes payload) {
  Buffer buffer;
  if (!payload.empty()) {
    buffer = co_await io::AcquireBuffer(pool, io);
    buffer.resize(payload.size());
    std::memcpy(buffer.data(), payload.data(), payload.size());
  }
  Status sent = co_await stream.send(header, std::move(buffer));
  co_return sent;
}

inline Bytes payload_of(const ReceivedFrame& frame) {
  const auto bytes = frame.payload.bytes();
  return Bytes(bytes.begin(), bytes.end());
}

struct TransportCase {
  IoEngine engine;
  Cipher cipher;
};

inline std::string transport_case_text(const testing::TestParamInfo<TransportCase>& instance) {
  std::string cipher = "Plain";
  if (instance.param.cipher == Cipher::kAes128Gcm) cipher = "Aes128Gcm";
  if (instance.param.cipher == Cipher::kAes256Gcm) cipher = "Aes256Gcm";
  if (instance.param.cipher == Cipher::kChaCha20Poly1305) cipher = "ChaCha20Poly1305";
  return engine_text(instance.param.engine) + cipher;
}

class TcpTest : public testing::TestWithParam<TransportCase> {
 protected:
  void SetUp() override {
    runtime_ = make_runtime(GetParam().engine);
    if (!runtime_) GTEST_SKIP() << io::uring_unavailable_reason();
    meter_ = std::make_unique<StageMeter>(runtime_->environment());
  }
  Cipher cipher() const { return GetParam().cipher; }
  io::Io& control() { return runtime_->control(); }
  io::Io& worker(std::size_t index) { return runtime_->worker(index); }
  void run(io::Task<void> main) { runtime_->run(std::move(main)); }

  std::unique_ptr<io::Runtime> runtime_;
  std::unique_ptr<StageMeter> meter_;
};

}  // namespace fgsync::transport
