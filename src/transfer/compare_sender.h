// The sender's side of a session that compares: announces its tree, reads what is asked for, and
// says its digests.
#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "transfer/digest_lanes.h"
#include "transfer/manifest_sender.h"
#include "transfer/session.h"

namespace fgsync::transfer {

class CompareSender {
 public:
  CompareSender(Session& session, const std::vector<ResolvedSource>& sources,
                wire::TargetAccept accept);

  // From an open session to its end; session.status() says how it went. On the control worker.
  io::Task<void> run();

  // Any thread.
  ProgressSnapshot progress() const;
  // After run(). Files that are the same are unchanged ones.
  FileFigures files() const;
  ByteFigures bytes() const;
  const wire::Summary& receiver_summary() const { return receiver_summary_; }

 private:
  io::Task<void> announce();
  io::Task<void> read_answers();
  Status on_message(wire::Message& message, bool& finished);
  Status on_plan(const wire::PlanBatch& plan);
  Status on_settled(const wire::SettledBatch& settled);
  void close_lanes_if_planned();
  wire::Summary summary() const;

  Session& session_;
  const std::vector<ResolvedSource>& sources_;
  const wire::TargetAccept accept_;
  OutgoingTable outgoing_;
  FlowWindow window_;
  ManifestSender manifest_;
  DigestLanes lanes_;
  wire::Summary receiver_summary_;
  // Control worker only.
  std::uint64_t decided_ = 0;
  bool announced_all_ = false;
  std::unordered_set<std::uint64_t> asked_for_;  // and not settled
  // Written by the control worker, read by any.
  std::atomic<bool> plan_complete_{false};
  std::atomic<std::uint64_t> bytes_wanted_{0};
  std::atomic<std::uint64_t> files_settled_{0};
  std::atomic<std::uint64_t> files_same_{0};
  std::atomic<std::uint64_t> bytes_same_{0};
};

}  // namespace fgsync::transfer
