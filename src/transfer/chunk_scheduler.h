// The one queue of work: chunks of large files, largest files first, and packs of small files. Any
// lane of any stream takes the next piece when it has room (late binding), so a slow stream is
// never a straggler.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <vector>

#include "io/sync.h"
#include "transfer/outgoing_file.h"

namespace fgsync::transfer {

// Either a chunk of one file or a pack.
struct WorkItem {
  std::shared_ptr<OutgoingFile> file;  // set for a chunk
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::vector<std::shared_ptr<OutgoingFile>> pack;
};

// Chunks of so many files, the largest, are handed out in turn: the receiver's kernel writes one
// file through the page cache at one processor's speed, and several side by side.
inline constexpr std::size_t kFilesAtATime = 4;

// Thread-safe.
class ChunkScheduler {
 public:
  // Files up to `packed_file_bytes_max` go in packs.
  ChunkScheduler(std::uint32_t chunk_bytes, std::uint64_t packed_file_bytes_max)
      : chunk_bytes_(chunk_bytes), packed_file_bytes_max_(packed_file_bytes_max) {}

  // All at once, so that idle lanes find packs and not single files.
  void add(std::vector<std::shared_ptr<OutgoingFile>> files);
  // Nothing more will be added: lanes get nullopt once the queue is empty.
  void finish();
  // Drops what is queued; lanes get nullopt at once.
  void close();

  class Awaiter {
   public:
    Awaiter(ChunkScheduler& scheduler, io::Io& io) : scheduler_(scheduler), io_(io) {}
    Awaiter(const Awaiter&) = delete;
    Awaiter& operator=(const Awaiter&) = delete;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> coroutine);
    std::optional<WorkItem> await_resume() { return std::move(item_); }

   private:
    friend class ChunkScheduler;
    ChunkScheduler& scheduler_;
    io::Io& io_;
    std::coroutine_handle<> coroutine_;
    std::optional<WorkItem> item_;
  };
  Awaiter next(io::Io& io) { return Awaiter(*this, io); }

 private:
  struct Large {
    std::shared_ptr<OutgoingFile> file;
    std::uint64_t next_offset = 0;
    bool operator<(const Large& other) const { return file->size() < other.file->size(); }
  };
  std::optional<WorkItem> take();
  void serve_waiters();

  const std::uint32_t chunk_bytes_;
  const std::uint64_t packed_file_bytes_max_;
  std::mutex mutex_;
  std::priority_queue<Large> large_;                 // guarded by mutex_
  std::deque<Large> active_;                         // guarded by mutex_; in turn
  std::deque<std::shared_ptr<OutgoingFile>> small_;  // guarded by mutex_
  std::deque<Awaiter*> waiting_;                     // guarded by mutex_
  bool finished_ = false;                            // guarded by mutex_
};

}  // namespace fgsync::transfer
