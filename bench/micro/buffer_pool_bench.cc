// Taking a slot of the pool and giving it back, by one thread and by as many as a side has workers.
#include <benchmark/benchmark.h>

#include <memory>
#include <utility>

#include "base/limits.h"
#include "check.h"
#include "memory/buffer_pool.h"

namespace fgsync::bench {
namespace {

constexpr std::size_t kSlotBytes = limits::kChunkBytesDefault + limits::kSlotSpareBytes;
constexpr std::size_t kSlots = 8;

std::unique_ptr<BufferPool> pool;  // of all threads of one run

void make_pool(const benchmark::State& /*state*/) {
  auto made = BufferPool::create(kSlotBytes, kSlots);
  require(made.ok(), "making a pool");
  pool = std::move(*made);
}

void check_pool(const benchmark::State& /*state*/) {
  require(pool->free_count() == kSlots, "every slot has come back");
  pool.reset();
}

void buffer_pool(benchmark::State& state) {
  for (auto _ : state) {
    const auto buffer = pool->try_acquire();
    require(buffer && buffer->capacity() == kSlotBytes, "a slot");
    benchmark::DoNotOptimize(buffer->data());
  }
}
BENCHMARK(buffer_pool)->Setup(make_pool)->Teardown(check_pool)->Threads(1)->Threads(2)->Threads(8);

}  // namespace
}  // namespace fgsync::bench
