// Direct reads and writes at depth by either engine, with the pool's memory registered; the file is
// in $TMPDIR, else in /tmp.
#include <benchmark/benchmark.h>

#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "base/limits.h"
#include "engines.h"
#include "io/sync.h"
#include "memory/buffer_pool.h"

namespace fgsync::bench {
namespace {

constexpr std::size_t kSlotBytes = limits::kMiB;
constexpr std::size_t kDepth = 8;
constexpr std::size_t kSlotsEach = 4;  // of the file, for each of those at work
constexpr std::size_t kFileBytes = kSlotBytes * kDepth * kSlotsEach;

// A file of no name, gone with its handle.
class File {
 public:
  File(benchmark::State& state, io::FileSystem& files) {
    const char* const place = ::getenv("TMPDIR");
    std::string path = std::string(place != nullptr ? place : "/tmp") + "/fgsync-bench-XXXXXX";
    require(::mkdtemp(path.data()) != nullptr, "making a directory");
    auto directory = files.open_path(path);
    require(directory.ok(), "opening it");
    auto file = files.open_file(*directory, "file", io::OpenMode::kCreateDirect);
    (void)::unlink((path + "/file").c_str());
    (void)::rmdir(path.c_str());
    if (file.ok()) {
      handle = std::move(*file);
    } else {
      state.SkipWithError("no direct I/O on this file system");
    }
  }
  io::FileHandle handle;
};

struct Work {
  io::Io& io;
  const io::FileHandle& file;
  BufferPool& pool;
  bool writes;
};

std::byte first_byte(std::size_t slot) { return std::byte(slot * 3 + 1); }

// Every kDepth-th slot of the file, one after the other.
io::Task<void> run_lane(Work work, std::size_t lane) {
  Buffer buffer = co_await io::AcquireBuffer(work.pool, work.io);
  buffer.resize(kSlotBytes);
  for (std::size_t slot = lane; slot < kDepth * kSlotsEach; slot += kDepth) {
    if (work.writes) {
      *buffer.data() = first_byte(slot);
      const Status written =
          co_await io::write_direct(work.io, work.file, buffer.bytes(), slot * kSlotBytes);
      require(written.ok(), "writing");
    } else {
      *buffer.data() = std::byte(0);
      const auto count =
          co_await io::read_direct(work.io, work.file, buffer.bytes(), slot * kSlotBytes);
      require(count.ok() && *count == kSlotBytes && *buffer.data() == first_byte(slot),
              "reading what was written");
    }
  }
}

io::Task<void> run_lanes(Work work) {
  io::TaskGroup group;
  for (std::size_t lane = 0; lane < kDepth; ++lane) group.spawn(work.io, run_lane(work, lane));
  co_await group.join(work.io);
}

io::Task<void> measure(benchmark::State& state, Work work) {
  co_await io::resume_on(work.io);
  work.io.register_region(work.pool.region());
  Work writing = work, reading = work;
  writing.writes = true;
  reading.writes = false;
  co_await run_lanes(writing);
  for (auto _ : state) co_await run_lanes(work);
  co_await run_lanes(reading);
}

void direct_io(benchmark::State& state, IoEngine engine, bool writes) {
  const auto runtime = make_runtime(state, engine);
  if (!runtime) return;
  const File file(state, runtime->environment().files());
  if (!file.handle) return;
  auto pool = BufferPool::create(kSlotBytes, kDepth);
  require(pool.ok(), "making a pool");
  runtime->run(measure(state, Work{runtime->control(), file.handle, **pool, writes}));
  state.SetBytesProcessed(state.iterations() * std::int64_t(kFileBytes));
}
BENCHMARK_CAPTURE(direct_io, uring_read, IoEngine::kUring, false)->UseRealTime();
BENCHMARK_CAPTURE(direct_io, uring_write, IoEngine::kUring, true)->UseRealTime();
BENCHMARK_CAPTURE(direct_io, posix_read, IoEngine::kPosix, false)->UseRealTime();
BENCHMARK_CAPTURE(direct_io, posix_write, IoEngine::kPosix, true)->UseRealTime();

}  // namespace
}  // namespace fgsync::bench
