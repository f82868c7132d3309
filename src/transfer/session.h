// One side of one run: what its coroutines share. Sender and receiver are roles; everything here is
// the same for both.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "fgsync/options.h"
#include "fgsync/report.h"
#include "fgsync/transfer.h"
#include "io/runtime.h"
#include "io/sync.h"
#include "memory/buffer_pool.h"
#include "transfer/data_stream.h"
#include "transfer/error_log.h"
#include "transport/stage_meter.h"
#include "transport/stream.h"
#include "wire/message.h"

namespace fgsync::transfer {

// What both sides have agreed on.
struct SessionParameters {
  bool dry_run = false;
  bool compare = false;  // a dry run
  bool make_parents = false;
  bool read_back = false;
  bool resume = true;
  bool fail_if_locked = false;
  bool publish_tree = false;
  Durability durability = Durability::kBatch;
  std::vector<std::string> last;
  Selection selection;
  Changes changes;
  DirectIo direct_io = DirectIo::kAuto;
  Cipher cipher = Cipher::kNone;
  std::uint16_t streams = 1;
  std::uint32_t chunk_bytes = 0;
  std::uint64_t bandwidth_limit = 0;
  std::chrono::milliseconds timeout{0};

  // Both sides keep a checksum for each chunk of a file under way: no larger file is taken.
  std::uint64_t file_bytes_max() const { return limits::kFileChunksMax * chunk_bytes; }
  // From this size on a file is journaled while it comes, and has a sync of its own. Four chunks:
  // 16 MiB with the default, below which a batch's flush is sooner there than a commit of the
  // journal.
  std::uint64_t journaled_file_bytes_min() const { return std::uint64_t{4} * chunk_bytes; }
  // Files up to this size travel packed; larger ones in chunks.
  std::uint64_t packed_file_bytes_max() const;
};

// The buffer pool that a side with these parameters needs, within limits::kPoolBytesMax whatever a
// peer proposes: for each stream one slot that is sent or
// received and one that is read or written, and two to spare.
Result<std::unique_ptr<BufferPool>> make_buffer_pool(const SessionParameters& parameters);

class DataConnections;

class Session {
 public:
  // `peer` names the other side in messages to people.
  Session(io::Runtime& runtime, std::unique_ptr<transport::ControlStream> control, std::string peer,
          CancelToken& cancel);

  io::Io& control_io() { return runtime_.control(); }
  io::Runtime& runtime() { return runtime_; }
  io::Environment& environment() { return runtime_.environment(); }
  io::FileSystem& files() {
    return follows_links_ ? environment().files_through_links() : environment().files();
  }
  // For a sender, before anything runs: symlinks are what they lead to.
  void follow_links() { follows_links_ = true; }
  transport::ControlStream& control() { return *control_; }
  transport::StageMeter& meter() { return meter_; }
  ErrorLog& errors() { return errors_; }
  const std::string& peer() const { return peer_; }
  CancelToken& cancel() { return cancel_; }

  // Set during the opening phases, constant from then on.
  SessionParameters parameters;
  // What a sender walks by, with parameters.selection.lists_paths; taken when the walk is set up.
  std::vector<std::string> listed_paths;
  BufferPool* pool = nullptr;
  std::vector<std::unique_ptr<DataStream>> streams;
  // Replaces connections that are lost; nullptr: one that is lost has failed the session.
  DataConnections* connections = nullptr;

  // Messages to the peer, from any thread; sent in this order by write_control().
  void push(wire::Message message) { (void)outbox_.push(std::move(message)); }

  // The session cannot go on. The first failure counts: it is told to the peer (unless the peer
  // told it) and makes every wait of this side end. Any thread.
  void fail(const Status& status);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // For a receiver: what had gone wrong with single paths is told before the reason. A sender's
  // peer does not listen to that before the end. Before anything runs.
  void tell_errors_on_failure() { tells_errors_ = true; }
  // A data stream broke. That is rarely the reason: a peer that gives up closes its streams, and
  // says why on the control connection a moment later. So this is only kept; settle_lost_stream()
  // makes it the session's failure when no better reason has come within kReasonPatience. Any
  // thread.
  void stream_lost(const Status& status);
  // On the control worker, now and then; `at_once` when nothing more can come.
  void settle_lost_stream(bool at_once);
  static constexpr std::chrono::milliseconds kReasonPatience{1000};
  // Both sides have everything they need from each other: nothing can fail the session any more.
  void complete() { completed_.store(true, std::memory_order_release); }
  // The first failure; OK while there is none.
  Status status() const;
  // The peer has given up by itself, and said why.
  bool peer_aborted() const { return peer_aborted_.load(std::memory_order_relaxed); }
  // What else must be woken when the session fails (a scheduler, a window). Before anything runs.
  void on_failure(std::function<void()> wake) { wakes_.push_back(std::move(wake)); }

  // Nothing more will be pushed: write_control() sends what is left and returns.
  void close_outbox() { outbox_.close(); }

  // Useful work done so far by this side, in bytes: for heartbeats and the timeout.
  std::uint64_t progress() const {
    return meter_.progress() + progress_.load(std::memory_order_relaxed);
  }
  // Entries were listed, planned or settled.
  void add_progress(std::size_t entries = 1) {
    progress_.fetch_add(entries * limits::kProgressBytesPerEntry, std::memory_order_relaxed);
  }
  // Something that happens once in a session, or a wait that is no stall.
  void add_step() { progress_.fetch_add(limits::kProgressBytesMin, std::memory_order_relaxed); }
  // While a flush to the disk is under way: it moves no bytes that could be counted, and may take
  // its time without being a stall.
  class Flushing {
   public:
    explicit Flushing(Session& session) : session_(session) { session_.flushing_.fetch_add(1); }
    ~Flushing() { session_.flushing_.fetch_sub(1); }
    Flushing(const Flushing&) = delete;
    Flushing& operator=(const Flushing&) = delete;

   private:
    Session& session_;
  };
  // A flush of a whole file system has failed: of nothing on it that is not synced yet is it known
  // any more whether it will reach the disk.
  void set_flush_failed() { flush_failed_.store(true); }
  bool has_flush_failed() const { return flush_failed_.load(); }
  bool is_flushing() const { return flushing_.load(std::memory_order_relaxed) > 0; }
  void set_peer_progress(std::uint64_t progress) {
    peer_progress_.store(progress, std::memory_order_relaxed);
  }
  // How long this side has been listening without hearing anything, heartbeats included. Control
  // worker.
  io::Duration silence() {
    return listening_since_ ? environment().now() - *listening_since_ : io::Duration::zero();
  }
  std::uint64_t peer_progress() const { return peer_progress_.load(std::memory_order_relaxed); }
  // A receiver tells with each heartbeat what has come; a sender hears it, and refuses what can't
  // be. Before anything runs.
  using TellFrames = std::function<std::vector<std::uint64_t>()>;
  void tell_frames(TellFrames tell) { tell_frames_ = std::move(tell); }
  using HearFrames = std::function<Status(const std::vector<std::uint64_t>& frames)>;
  void hear_frames(HearFrames hear) { hear_frames_ = std::move(hear); }
  wire::Heartbeat heartbeat() const;

  // One path cannot be replicated: noted, and true; or it is a sign that nothing else will go
  // better (the target is full or read-only, direct I/O was demanded where there is none): the
  // session fails.
  bool path_failed(const std::string& path, const Status& status);

  // For a receiver: a note that is worth telling before the run has ended. The sender hears of it
  // at once. Any thread.
  void tell(const std::string& note);

  // What the peer reported about its side; kept apart from this side's own. Control worker only.
  void add_peer_error(ErrorEntry error) { peer_errors_.add(std::move(error)); }
  void add_peer_note(const std::string& note) { peer_errors_.note(note); }
  const ErrorLog& peer_errors() const { return peer_errors_; }

  // An entry that has been replicated or brought in line (dry run: would be), for whoever asked to
  // be told; `path` relative to the target's root. Any thread.
  void want_changes() { wants_changes_ = true; }
  void announce_change(const std::string& path, const wire::ManifestEntry& entry,
                       EntryDifferences differences, bool is_replicated);
  std::vector<EntryChange> take_changes();

  // Likewise what a comparison has found.
  void announce_difference(Difference difference);
  std::vector<Difference> take_differences();

  // Figures of this side so far.
  SideFigures figures();

  Status take_heartbeat(const wire::Heartbeat& heartbeat);

  friend io::Task<void> write_control(Session& session);
  friend io::Task<Result<wire::Message>> receive_message(Session& session);

 private:
  io::Runtime& runtime_;
  bool follows_links_ = false;  // constant once the session runs
  const std::unique_ptr<transport::ControlStream> control_;
  const std::string peer_;
  CancelToken& cancel_;
  transport::StageMeter meter_;
  ErrorLog errors_;
  ErrorLog peer_errors_;
  bool wants_changes_ = false;           // constant once the session runs
  bool tells_errors_ = false;            // the same
  std::vector<EntryChange> changes_;     // guarded by mutex_
  std::vector<Difference> differences_;  // guarded by mutex_
  io::Channel<wire::Message> outbox_;
  std::vector<std::function<void()>> wakes_;
  TellFrames tell_frames_;  // constant once the session runs
  HearFrames hear_frames_;  // constant once the session runs
  std::atomic<bool> failed_{false};
  std::atomic<bool> flush_failed_{false};
  mutable std::mutex mutex_;
  Status lost_stream_;               // guarded by mutex_
  io::TimePoint lost_stream_since_;  // guarded by mutex_
  std::atomic<bool> completed_{false};
  Status status_;                          // guarded by mutex_
  std::atomic<bool> peer_aborted_{false};  // the failure came from the peer
  std::atomic<std::uint64_t> progress_{0};
  std::atomic<std::uint64_t> peer_progress_{0};
  std::atomic<int> flushing_{0};
  std::optional<io::TimePoint> listening_since_;  // control worker only
};

// Sends what is pushed until the outbox is closed or the connection breaks. Once per session.
io::Task<void> write_control(Session& session);

// The next message. Heartbeats are taken note of here and never returned; an Abort fails the
// session with the peer's reason. Whatever goes wrong has failed the session when it is returned.
io::Task<Result<wire::Message>> receive_message(Session& session);

// After the last message: waits until the peer has closed its end, or a little while.
io::Task<void> linger(Session& session);

// Sends this side's errors, in batches that fit a message; and its notes.
void push_errors(Session& session);
void push_notes(Session& session);

}  // namespace fgsync::transfer
