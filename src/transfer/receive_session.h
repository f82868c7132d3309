// The receiver's side of a session.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "io/pause.h"
#include "transfer/committer.h"
#include "transfer/digest_lanes.h"
#include "transfer/planner.h"
#include "transfer/receive_worker.h"
#include "transfer/session.h"
#include "transfer/stream_recovery.h"
#include "transfer/target_lock.h"
#include "transfer/target_mapping.h"
#include "transfer/tree_switch.h"

namespace fgsync::transfer {

class ReceiveSession {
 public:
  // `root` is the open target directory; empty where it does not exist (dry run).
  // `transfer` names the sources: see transfer_identity(). With `tree_switch`, which must outlive
  // run(), the root is the tree that it prepares.
  ReceiveSession(Session& session, const ResolvedTarget& target, io::FileHandle root,
                 std::string session_name, const wire::Checksum& transfer,
                 TreeSwitch* tree_switch = nullptr);

  // From an open session to its end. What went wrong is in session.status(); of what was staged and
  // not published only that is left behind which the next run can go on with. On the control
  // worker.
  io::Task<void> run();

  // Any thread.
  ProgressSnapshot progress() const;
  // After run(): this side's figures, and what the sender reported, with the final ones.
  FileFigures files() const;
  ByteFigures bytes() const;
  std::uint64_t held_bytes() const { return planner_.bytes_held(); }
  const wire::Summary& sender_summary() const { return sender_summary_; }
  wire::Checksum digest() const;

 private:
  io::Task<void> read_announcements();
  io::Task<Status> on_manifest(wire::ManifestBatch batch);
  void take_figures();
  void compare(std::vector<Planner::Undecided> files);
  io::Task<Status> on_their_digest(wire::FileEnd end);
  io::Task<void> lock_at_once();
  io::Task<void> on_file_end(wire::FileEnd end);
  io::Task<void> commit_regularly();
  io::Task<void> journal_regularly();
  void land();
  void land_tree();
  Status why_markers_wait() const;
  void clean_staging(const std::set<const io::FileHandle*>& kept = {});
  void leave_staging();
  void settle_receipt();
  io::Task<bool> prepare_tree();
  wire::Summary summary();

  Session& session_;
  const std::string root_display_;
  const std::string typed_root_;
  TreeSwitch* const tree_switch_;
  storage::DirectoryTree directories_;
  ChunkJournal journal_;
  storage::StagingArea staging_;
  receipt::ReceiptWriter receipt_;
  IncomingTable incoming_;
  TargetLock lock_;
  Committer committer_;
  Planner planner_;
  StreamRecovery recovery_;
  ReceiveWorker worker_;
  // Where contents are compared: files that stand at the target, read here before the sender is
  // asked. On the control worker.
  struct Compared {
    Planner::Undecided file;
    std::optional<Result<wire::Checksum>> ours = std::nullopt;
  };
  std::unique_ptr<DigestLanes> lanes_;
  std::unordered_map<std::uint64_t, Compared> compared_;
  io::TaskGroup finishing_;  // large files whose last word has come
  io::Pause commit_pause_;
  io::Pause journal_pause_;
  wire::DataEnd sender_end_;
  io::Event all_come_;  // or the session has failed
  wire::Summary sender_summary_;
  std::atomic<bool> plan_complete_{false};
  std::atomic<std::uint64_t> files_announced_{0};
  std::atomic<std::uint64_t> files_left_{0};  // unchanged or passed over
  std::atomic<std::uint64_t> bytes_wanted_{0};
};

}  // namespace fgsync::transfer
