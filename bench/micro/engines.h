// A coroutine measured on the production runtime, with either engine.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "check.h"
#include "io/runtime.h"

namespace fgsync::bench {

// Null, and the benchmark skipped, where the engine is not offered.
inline std::unique_ptr<io::Runtime> make_runtime(benchmark::State& state, IoEngine engine) {
  io::RuntimeOptions options;
  options.engine = engine;
  options.workers = 2;
  auto runtime = io::create_runtime(options);
  if (runtime.ok()) return std::move(*runtime);
  state.SkipWithError(runtime.status().message().c_str());
  return nullptr;
}

}  // namespace fgsync::bench
