// The one queue of work: chunks of large files, largest files first, and packs of small files. Any
// lane of any stream takes the next piece when it has room (late binding), so a slow stream is
// never a straggler, and what a lost connection did not deliver goes over the others.
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

// Either a chunk of one file or a pack. One that is neither stands for the end of a stream.
struct WorkItem {
  std::shared_ptr<OutgoingFile> file;  // set for a chunk
  std::uint64_t offset = 0;
  std::uint32_t length = 0;  // 0: the receiver has all of the file, only its end is to be told
  std::vector<std::shared_ptr<OutgoingFile>> pack;
  // It was sent before and did not arrive: its bytes and its part of the file are counted already.
  bool again = false;
  bool is_stream_end() const { return !file && pack.empty(); }
};

// Chunks of so many files, the largest, are handed out in turn: the receiver's kernel writes one
// file through the page cache at one processor's speed, and several side by side.
inline constexpr std::size_t kFilesAtATime = 4;

// Thread-safe.
class ChunkScheduler {
 public:
  // Those who take work for one connection, until it is lost. What they were given is theirs until
  // it is settled or comes back.
  struct Lanes {
    std::size_t unsettled = 0;  // guarded by the scheduler's mutex
    bool released = false;      // guarded by the scheduler's mutex
  };

  // Files up to `packed_file_bytes_max` go in packs.
  ChunkScheduler(std::uint32_t chunk_bytes, std::uint64_t packed_file_bytes_max)
      : chunk_bytes_(chunk_bytes), packed_file_bytes_max_(packed_file_bytes_max) {}

  // All at once, so that idle lanes find packs and not single files.
  void add(std::vector<std::shared_ptr<OutgoingFile>> files);
  // Nothing more will be added: lanes get nullopt once the queue is empty.
  void finish();
  // Drops what is queued; lanes get nullopt at once.
  void close();

  // So many pieces of what these lanes took have arrived, or need not be sent any more.
  void settle(Lanes& lanes, std::size_t count);
  // These pieces, which the lanes took, have not arrived: they go before everything else.
  void take_back(Lanes& lanes, std::vector<WorkItem> items);
  // The connection is lost: its lanes get nullopt, from now until they are admitted again.
  void release(Lanes& lanes);
  void admit(Lanes& lanes);
  bool is_released(const Lanes& lanes) const;
  // Set when all that there is has been taken and settled, or by close().
  io::Event& drained() { return drained_; }

  class Awaiter {
   public:
    Awaiter(ChunkScheduler& scheduler, Lanes& lanes, io::Io& io)
        : scheduler_(scheduler), lanes_(lanes), io_(io) {}
    Awaiter(const Awaiter&) = delete;
    Awaiter& operator=(const Awaiter&) = delete;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> coroutine);
    std::optional<WorkItem> await_resume() { return std::move(item_); }

   private:
    friend class ChunkScheduler;
    ChunkScheduler& scheduler_;
    Lanes& lanes_;
    io::Io& io_;
    std::coroutine_handle<> coroutine_;
    std::optional<WorkItem> item_;
  };
  // The next piece. Waits while there is none and one may still come, of a lost connection too, and
  // while the lanes have more than limits::kUnsettledFramesMax that are not settled.
  Awaiter next(Lanes& lanes, io::Io& io) { return Awaiter(*this, lanes, io); }

 private:
  struct Large {
    std::shared_ptr<OutgoingFile> file;
    std::uint64_t next_offset = 0;
    bool operator<(const Large& other) const { return file->size() < other.file->size(); }
  };
  void forget_unsettled(Lanes& lanes, std::size_t count);
  // What a lane gets now; nullopt and false: it has to wait.
  bool serve(Lanes& lanes, std::optional<WorkItem>& item);
  std::optional<WorkItem> take();
  void serve_waiters();
  void look_whether_drained();

  const std::uint32_t chunk_bytes_;
  const std::uint64_t packed_file_bytes_max_;
  mutable std::mutex mutex_;
  std::deque<WorkItem> returned_;                    // guarded by mutex_
  std::priority_queue<Large> large_;                 // guarded by mutex_
  std::deque<Large> active_;                         // guarded by mutex_; in turn
  std::deque<std::shared_ptr<OutgoingFile>> small_;  // guarded by mutex_
  std::deque<Awaiter*> waiting_;                     // guarded by mutex_
  bool finished_ = false;                            // guarded by mutex_
  bool closed_ = false;                              // guarded by mutex_
  std::size_t unsettled_ = 0;                        // guarded by mutex_; of all lanes
  std::size_t unsettled_lost_ = 0;                   // guarded by mutex_; of those released
  io::Event drained_;
};

}  // namespace fgsync::transfer
