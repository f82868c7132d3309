// Runs a test's coroutine on the production runtime, once per I/O engine, with real sockets on
// loopback.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/io.h"
#include "io/runtime.h"

namespace fgsync::transport {

// ASSERT_TRUE for coroutines, which have no plain return.
#define CO_ASSERT(condition)                     \
  do {                                           \
    if (!(condition)) {                          \
      ADD_FAILURE() << "is not so: " #condition; \
      co_return;                                 \
    }                                            \
  } while (false)

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(first, first + text.size());
}

// Reproducible contents that differ from place to place.
inline Bytes pattern(std::size_t size, std::uint32_t seed) {
  Bytes bytes(size);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::size_t done = 0; done < size; done += sizeof state) {
    state = state * 1664525u + 1013904223u;
    std::memcpy(bytes.data() + done, &state, std::min(sizeof state, size - done));
  }
  return bytes;
}

inline std::unique_ptr<io::Runtime> make_runtime(IoEngine engine) {
  io::RuntimeOptions options;
  options.engine = engine;
  options.workers = 2;
  auto runtime = io::create_runtime(options);
  return runtime.ok() ? std::move(*runtime) : nullptr;
}

inline std::string engine_text(IoEngine engine) {
  return engine == IoEngine::kUring ? "Uring" : "Posix";
}

inline io::SocketAddress loopback_address(std::uint16_t port = 0) {
  auto address = io::SocketAddress::parse("127.0.0.1", port);
  return *address;
}

// What the tests wait at most for anything; a passing test never does.
inline io::TimePoint far_deadline(io::Io& io) {
  return io.environment().now() + std::chrono::seconds(60);
}

struct SocketPair {
  io::Socket first;
  io::Socket second;
};

// Two connected TCP sockets on 127.0.0.1.
inline io::Task<void> connect_pair(io::Io& io, SocketPair& pair) {
  io::Network& network = io.environment().network();
  auto listener = network.listen(loopback_address());
  CO_ASSERT(listener.ok());
  auto address = network.local_address(*listener);
  CO_ASSERT(address.ok());
  auto connecting = network.create(*address, std::nullopt);
  CO_ASSERT(connecting.ok());
  Status connected = co_await io::connect(io, *connecting, *address);
  CO_ASSERT(connected.ok());
  auto accepted = co_await io::accept(io, *listener);
  CO_ASSERT(accepted.ok());
  pair.first = std::move(*connecting);
  pair.second = std::move(*accepted);
}

// The fixture of a suite that runs on both engines.
class EngineTest : public testing::TestWithParam<IoEngine> {
 protected:
  void SetUp() override {
    runtime_ = make_runtime(GetParam());
    if (!runtime_) GTEST_SKIP() << io::uring_unavailable_reason();
  }
  io::Io& control() { return runtime_->control(); }
  io::Io& worker(std::size_t index) { return runtime_->worker(index); }
  void run(io::Task<void> main) { runtime_->run(std::move(main)); }

  std::unique_ptr<io::Runtime> runtime_;
};

#define FGSYNC_ON_BOTH_ENGINES(Suite)                                                           \
  INSTANTIATE_TEST_SUITE_P(Engines, Suite, testing::Values(IoEngine::kPosix, IoEngine::kUring), \
                           [](const testing::TestParamInfo<IoEngine>& instance) {               \
                             return engine_text(instance.param);                                \
                           })

}  // namespace fgsync::transport
