// The receiver's side of a session that compares: looks at what is announced, reads its own files
// beside the sender, and says what differs. Writes nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "transfer/digest_lanes.h"
#include "transfer/session.h"
#include "transfer/tree_comparison.h"

namespace fgsync::transfer {

class CompareReceiver {
 public:
  // `root` is the open target directory.
  CompareReceiver(Session& session, const ResolvedTarget& target, io::FileHandle root);

  // From an open session to its end; session.status() says how it went. On the control worker.
  io::Task<void> run();

  // Any thread.
  ProgressSnapshot progress() const;
  // After run(): what the sender reported.
  const wire::Summary& sender_summary() const { return sender_summary_; }

 private:
  // A file that both sides read.
  struct Pending {
    std::string path;
    std::uint64_t size = 0;
    std::optional<Result<wire::Checksum>> ours = std::nullopt;
    std::optional<wire::FileEnd> theirs = std::nullopt;
  };

  io::Task<void> read_announcements();
  io::Task<Status> on_message(wire::Message& message, bool& finished);
  io::Task<Status> on_manifest(wire::ManifestBatch batch);
  Status on_file_end(const wire::FileEnd& end);
  void on_digest(std::uint64_t id, const Result<wire::Checksum>& digest);
  void settle_if_both(std::uint64_t id);
  io::Task<void> look_for_extra();
  io::Task<void> see_whether_it_stands();
  void take(Compared& compared);
  void differ(std::vector<Difference> differences);
  void add_error(const std::string& path, const Status& status);
  void flush_settled();
  wire::Summary summary();

  Session& session_;
  const std::string root_path_;
  TreeComparison comparison_;
  DigestLanes lanes_;
  wire::Summary sender_summary_;
  // Control worker only.
  std::unordered_map<std::uint64_t, Pending> pending_;
  wire::SettledBatch settled_;  // to be said
  bool incomplete_ = false;     // the sender could not list all
  std::uint64_t files_same_ = 0;
  std::uint64_t bytes_same_ = 0;
  // Written by the control worker, read by any.
  std::atomic<bool> announced_all_{false};
  std::atomic<std::uint64_t> files_announced_{0};
  std::atomic<std::uint64_t> files_done_{0};
  std::atomic<std::uint64_t> bytes_wanted_{0};
};

}  // namespace fgsync::transfer
