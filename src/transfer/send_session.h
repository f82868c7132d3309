// The sender's side of a session.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "transfer/digest_lanes.h"
#include "transfer/manifest_sender.h"
#include "transfer/send_worker.h"
#include "transfer/session.h"
#include "transfer/stream_recovery.h"
#include "wire/checksum.h"

namespace fgsync::transfer {

class SendSession {
 public:
  SendSession(Session& session, const std::vector<ResolvedSource>& sources,
              wire::TargetAccept accept);

  // From an open session (peer agreed, streams connected) to its end: everything that the receiver
  // asked for is sent and settled, both digests agree. What went wrong is in session.status(). On
  // the control worker.
  io::Task<void> run();

  // Any thread.
  ProgressSnapshot progress() const;
  bool waits_for_rate_limit() const { return limiter_.has_waiters(); }
  // After run().
  FileFigures files() const;
  ByteFigures bytes() const;
  std::uint64_t held_bytes() const { return bytes_held_.load(std::memory_order_relaxed); }
  wire::Checksum digest() const { return digest_.value(); }
  // What the receiver reported.
  const wire::Summary& receiver_summary() const { return receiver_summary_; }

 private:
  io::Task<void> announce();
  io::Task<void> read_answers();
  Status on_held(wire::HeldChunks& held);
  Status on_plan(const wire::PlanBatch& plan);
  Status on_compare(std::uint64_t id, std::vector<DigestRequest>& requests);
  Status on_settled(const wire::SettledBatch& settled);
  Status on_message(wire::Message& message, bool& finished);
  void finish_planning_if_complete();
  wire::Summary summary() const;
  Status compare_digests() const;

  Session& session_;
  const std::vector<ResolvedSource>& sources_;
  const wire::TargetAccept accept_;
  OutgoingTable outgoing_;
  FlowWindow window_;
  ChunkScheduler scheduler_;
  RateLimiter limiter_;
  ManifestSender manifest_;
  StreamRecovery recovery_;
  SendWorker worker_;
  std::unique_ptr<DigestLanes> lanes_;  // where contents are compared
  wire::TreeDigest digest_;
  wire::Summary receiver_summary_;
  // Control worker only.
  std::uint64_t decided_ = 0;
  bool announced_all_ = false;
  std::unordered_set<std::uint64_t> compared_;  // and not decided
  // Written by the control worker, read by any.
  std::atomic<bool> plan_complete_{false};
  std::atomic<std::uint64_t> files_sent_{0};
  std::atomic<std::uint64_t> files_settled_{0};
  std::atomic<std::uint64_t> files_unchanged_{0};
  std::atomic<std::uint64_t> bytes_wanted_{0};
  std::atomic<std::uint64_t> bytes_held_{0};
  std::atomic<std::uint64_t> bytes_replicated_{0};
  std::atomic<std::uint64_t> bytes_resumed_{0};  // of these, what the receiver had
  std::uint64_t held_chunks_ = 0;                // that the receiver has named
  std::atomic<std::uint64_t> bytes_unchanged_{0};
};

}  // namespace fgsync::transfer
