// Reads files, several at a time, for their digests: of small files many in one job, a large one by
// several lanes together.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "io/runtime.h"
#include "io/sync.h"
#include "memory/buffer_pool.h"
#include "transfer/file_digest.h"
#include "transfer/flow_window.h"
#include "transport/stage_meter.h"

namespace fgsync::transfer {

struct DigestRequest {
  FilePlace place;
  std::uint32_t chunk_bytes = 0;
  // The digest, or why there is none. Called on the control worker; perhaps not, after stop().
  std::function<void(const Result<wire::Checksum>& digest)> settle;
};

// On the control worker, but for stop(). Must be closed and joined once it was started.
class DigestLanes {
 public:
  // What is read, of `files`, counts as Stage::kRead of `meter`.
  DigestLanes(io::Runtime& runtime, io::FileSystem& files, transport::StageMeter& meter,
              std::size_t lanes);

  // Without memory for it nothing runs.
  Status start();
  void add(std::vector<DigestRequest> requests);
  // Goes on when little waits for a lane.
  FlowWindow::Awaiter wait_open() { return waiting_.wait_open(runtime_.control()); }
  // Nothing more is added.
  void close() { work_.close(); }
  // Everything is settled. After close().
  io::TaskGroup::JoinAwaiter join() { return reading_lanes_.join(runtime_.control()); }
  // Nothing further is read. Any thread.
  void stop() { reading_.stop = true; }

  std::size_t lanes() const { return lanes_; }

 private:
  // What the lanes take: several small files, or a share of a large one.
  struct LargeFile {
    LargeFile(io::FileSystem& files, DigestRequest request)
        : digest(files, std::move(request.place), request.chunk_bytes),
          settle(std::move(request.settle)) {}
    FileDigest digest;
    const std::function<void(const Result<wire::Checksum>& digest)> settle;
  };
  struct Work {
    std::vector<DigestRequest> small;
    std::shared_ptr<LargeFile> large;
  };

  io::Task<void> run_lane(io::Io* io);
  io::Task<void> read_small(io::Io* io, std::vector<DigestRequest>* requests, Buffer* buffer);
  io::Task<void> read_large(io::Io* io, std::shared_ptr<LargeFile> file, Buffer* buffer);

  io::Runtime& runtime_;
  io::FileSystem& files_;
  const std::size_t lanes_;
  std::unique_ptr<BufferPool> pool_;
  io::Channel<Work> work_;
  FlowWindow waiting_;  // for a lane
  Reading reading_;
  io::TaskGroup reading_lanes_;
};

}  // namespace fgsync::transfer
