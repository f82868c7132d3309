// Tests that hold for every engine: a runtime with two workers, and pieces that most of them need.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "io/runtime.h"
#include "io/sync.h"

namespace fgsync::io::testing {

using namespace std::chrono_literals;

class EngineTest : public ::testing::TestWithParam<IoEngine> {
 protected:
  void SetUp() override {
    if (GetParam() == IoEngine::kUring) {
      const std::string reason = uring_unavailable_reason();
      if (!reason.empty()) GTEST_SKIP() << reason;
    }
    RuntimeOptions options;
    options.engine = GetParam();
    options.workers = 2;
    auto runtime = create_runtime(options);
    ASSERT_TRUE(runtime.ok()) << runtime.status().message();
    runtime_ = std::move(*runtime);
  }

  Runtime& runtime() { return *runtime_; }

 private:
  std::unique_ptr<Runtime> runtime_;
};

inline std::string engine_name(const ::testing::TestParamInfo<IoEngine>& engine) {
  return engine.param == IoEngine::kUring ? "uring" : "posix";
}

#define FGSYNC_FOR_EACH_ENGINE(suite)                                                      \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::Values(IoEngine::kPosix, IoEngine::kUring), \
                           engine_name)

// Bytes that tell their place: a byte lost, doubled or moved shows.
inline std::vector<std::byte> pattern(std::size_t count, std::uint64_t seed = 1) {
  std::vector<std::byte> bytes(count);
  std::uint64_t state = seed;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

inline SocketAddress address_of(const char* host, std::uint16_t port = 0) {
  auto address = SocketAddress::parse(host, port);
  EXPECT_TRUE(address.ok()) << host;
  return *address;
}

struct Connection {
  Socket near;
  Socket far;
};

inline Task<void> accept_into(Io& io, const Socket& listener, Socket& accepted) {
  Result<Socket> socket = co_await accept(io, listener);
  EXPECT_TRUE(socket.ok()) << socket.status().message();
  if (socket.ok()) accepted = std::move(*socket);
}

// A connection over TCP within this process.
inline Task<Connection> make_connection(Io& io, const char* host = "127.0.0.1") {
  Network& network = io.environment().network();
  Result<Socket> listener = network.listen(address_of(host));
  EXPECT_TRUE(listener.ok()) << listener.status().message();
  const Result<SocketAddress> address = network.local_address(*listener);
  Result<Socket> near = network.create(*address, std::nullopt);
  EXPECT_TRUE(near.ok()) << near.status().message();
  Connection connection;
  connection.near = std::move(*near);
  TaskGroup group;
  group.spawn(io, accept_into(io, *listener, connection.far));
  const Status connected = co_await connect(io, connection.near, *address);
  EXPECT_TRUE(connected.ok()) << connected.message();
  co_await group.join(io);
  co_return connection;
}

inline Task<void> send_and_keep(Io& io, const Socket& socket, std::span<const std::byte> bytes,
                                Status& status) {
  Status sent = co_await send_all(io, socket, bytes);
  status = std::move(sent);
}

inline Task<void> receive_and_keep(Io& io, const Socket& socket, std::span<std::byte> bytes,
                                   Status& status) {
  Status received = co_await receive_exactly(io, socket, bytes);
  status = std::move(received);
}

}  // namespace fgsync::io::testing
