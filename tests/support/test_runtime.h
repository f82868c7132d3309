// The production runtime with parts of what is outside replaced.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "io/posix_file_system.h"
#include "io/runtime.h"
#include "support/faulty_file_system.h"

namespace fgsync::testing {

// Everything as it is, but the files.
class TestEnvironment final : public io::Environment {
 public:
  TestEnvironment(io::Environment& real, io::FileSystem& files) : real_(real), files_(files) {}
  io::TimePoint now() override { return real_.now(); }
  std::chrono::system_clock::time_point wall_clock() override { return real_.wall_clock(); }
  void random_bytes(std::span<std::byte> bytes) override { real_.random_bytes(bytes); }
  std::array<std::byte, 16> host_identity() override { return real_.host_identity(); }
  double cpu_seconds() override { return real_.cpu_seconds(); }
  std::uint64_t peak_memory_bytes() override { return real_.peak_memory_bytes(); }
  std::size_t usable_cores() override { return real_.usable_cores(); }
  bool has_aes() override { return real_.has_aes(); }
  io::FileSystem& files() override { return files_; }
  io::Network& network() override { return real_.network(); }

 private:
  io::Environment& real_;
  io::FileSystem& files_;
};

// Runs once, as every runtime does.
class TestRuntime final : public io::Runtime {
 public:
  // Null where the engine is not offered.
  static std::unique_ptr<TestRuntime> create(IoEngine engine) {
    io::RuntimeOptions options;
    options.engine = engine;
    options.workers = 2;
    auto real = io::create_runtime(options);
    if (!real.ok()) return nullptr;
    return std::unique_ptr<TestRuntime>(new TestRuntime(std::move(*real)));
  }

  io::Io& control() override { return real_->control(); }
  std::size_t worker_count() const override { return real_->worker_count(); }
  io::Io& worker(std::size_t index) override { return real_->worker(index); }
  io::Environment& environment() override { return environment_; }
  const char* engine_name() const override { return real_->engine_name(); }
  void run(io::Task<void> main) override { real_->run(std::move(main)); }

  FaultyFileSystem& files() { return files_; }

 private:
  explicit TestRuntime(std::unique_ptr<io::Runtime> real) : real_(std::move(real)) {}

  FaultyFileSystem files_{io::make_posix_file_system()};
  const std::unique_ptr<io::Runtime> real_;
  TestEnvironment environment_{real_->environment(), files_};
};

// A suite that runs on both engines.
class OnEachEngine : public ::testing::TestWithParam<IoEngine> {
 protected:
  void SetUp() override {
    if (!TestRuntime::create(GetParam())) GTEST_SKIP() << io::uring_unavailable_reason();
  }
};

inline std::string engine_of(const ::testing::TestParamInfo<IoEngine>& instance) {
  return instance.param == IoEngine::kUring ? "Uring" : "Posix";
}

#define FGSYNC_TEST_ON_EACH_ENGINE(Suite)                                                         \
  INSTANTIATE_TEST_SUITE_P(Engines, Suite, ::testing::Values(IoEngine::kPosix, IoEngine::kUring), \
                           ::fgsync::testing::engine_of)

}  // namespace fgsync::testing
