#include "transfer/digest_lanes.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace fgsync::transfer {
namespace {

// Small files read in one job, and work that waits for a lane.
constexpr std::size_t kSmallPerJob = 64;
constexpr std::size_t kWorkWaitingMax = 256;

}  // namespace

DigestLanes::DigestLanes(io::Runtime& runtime, io::FileSystem& files, transport::StageMeter& meter,
                         std::size_t lanes)
    : runtime_(runtime), files_(files), lanes_(lanes), waiting_(kWorkWaitingMax), reading_(meter) {}

Status DigestLanes::start() {
  auto pool = BufferPool::create(limits::kChunkBytesDefault, lanes_);
  if (!pool.ok()) return pool.status();
  pool_ = std::move(*pool);
  for (std::size_t lane = 0; lane < lanes_; ++lane) {
    io::Io& worker = runtime_.worker(lane % runtime_.worker_count());
    reading_lanes_.spawn(worker, run_lane(&worker));
  }
  return Status();
}

void DigestLanes::add(std::vector<DigestRequest> requests) {
  std::vector<Work> work;
  Work small;
  std::uint64_t small_bytes = 0;
  const auto close_small = [&] {
    if (!small.small.empty()) work.push_back(std::exchange(small, {}));
    small_bytes = 0;
  };
  for (DigestRequest& request : requests) {
    const std::uint64_t size = request.place.identity.size;
    if (size <= limits::kPackedFileBytesMax) {
      small_bytes += size;
      small.small.push_back(std::move(request));
      if (small.small.size() == kSmallPerJob || small_bytes >= limits::kPackBytesTarget) {
        close_small();
      }
      continue;
    }
    auto large = std::make_shared<LargeFile>(files_, std::move(request));
    const std::uint64_t shares = std::min<std::uint64_t>(lanes_, large->digest.chunks());
    for (std::uint64_t share = 0; share < shares; ++share) work.push_back({{}, large});
  }
  close_small();
  waiting_.add(work.size());
  for (Work& one : work) (void)work_.push(std::move(one));
}

io::Task<void> DigestLanes::run_lane(io::Io* io) {
  Buffer buffer = co_await io::AcquireBuffer(*pool_, *io);
  while (true) {
    std::optional<Work> work = co_await work_.pop(*io);
    if (!work) break;
    waiting_.remove(1);
    if (work->large) {
      co_await read_large(io, std::move(work->large), &buffer);
    } else {
      co_await read_small(io, &work->small, &buffer);
    }
  }
}

io::Task<void> DigestLanes::read_small(io::Io* io, std::vector<DigestRequest>* requests,
                                       Buffer* buffer) {
  std::vector<Result<wire::Checksum>> digests;
  co_await io::run_blocking(*io, [&] {
    for (DigestRequest& request : *requests) {
      if (reading_.stop) return;
      FileDigest digest(files_, std::move(request.place), request.chunk_bytes);
      transport::StageTimer timer(reading_.meter, Stage::kRead, digest.size());
      digests.push_back(digest.read_whole(buffer->whole()));
    }
  });
  co_await io::resume_on(runtime_.control());
  for (std::size_t i = 0; i < digests.size(); ++i) (*requests)[i].settle(digests[i]);
  co_await io::resume_on(*io);
}

io::Task<void> DigestLanes::read_large(io::Io* io, std::shared_ptr<LargeFile> file,
                                       Buffer* buffer) {
  auto digest = co_await file->digest.read_share(io, buffer, &reading_);
  if (!digest) co_return;
  co_await io::resume_on(runtime_.control());
  file->settle(*digest);
  co_await io::resume_on(*io);
}

}  // namespace fgsync::transfer
