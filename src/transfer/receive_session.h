// The receiver's side of a session.
#pragma once

#include <atomic>
#include <memory>

#include "io/pause.h"
#include "transfer/committer.h"
#include "transfer/planner.h"
#include "transfer/receive_worker.h"
#include "transfer/session.h"
#include "transfer/target_mapping.h"

namespace fgsync::transfer {

class ReceiveSession {
 public:
  // `root` is the open target directory; empty where it does not exist (dry run).
  ReceiveSession(Session& session, const ResolvedTarget& target, io::FileHandle root,
                 std::string session_name);

  // From an open session to its end. What went wrong is in session.status(); nothing that was
  // staged and not published is left behind. On the control worker.
  io::Task<void> run();

  // Any thread.
  ProgressSnapshot progress() const;
  // After run(): what the sender reported, with the final figures.
  const wire::Summary& sender_summary() const { return sender_summary_; }
  wire::Checksum digest() const;

 private:
  io::Task<void> read_announcements();
  io::Task<void> read_sender_summary();
  io::Task<Status> on_manifest(wire::ManifestBatch batch);
  io::Task<void> on_file_end(wire::FileEnd end);
  io::Task<void> commit_regularly();
  void land();
  void sync_mounts(const std::vector<storage::DirectoryReference>& mounts);
  void clean_staging();
  wire::Summary summary();

  Session& session_;
  storage::DirectoryTree directories_;
  storage::StagingArea staging_;
  IncomingTable incoming_;
  Committer committer_;
  Planner planner_;
  ReceiveWorker worker_;
  io::TaskGroup finishing_;  // large files whose last word has come
  io::Pause commit_pause_;
  wire::Summary sender_summary_;
  std::atomic<bool> plan_complete_{false};
  std::atomic<std::uint64_t> files_announced_{0};
  std::atomic<std::uint64_t> files_unchanged_{0};
  std::atomic<std::uint64_t> bytes_wanted_{0};
};

}  // namespace fgsync::transfer
