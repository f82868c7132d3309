// The two ends of a run as production has them (src/transfer/remote_run.h and far_session.h),
// without what stands around them there: a command line, a remote shell, a terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fgsync/options.h"
#include "fgsync/report.h"
#include "fgsync/transfer.h"
#include "process.h"
#include "transfer/far_session.h"
#include "transfer/remote_run.h"

namespace fgsync::sim {

struct RunPlan {
  bool push = true;
  std::uint16_t streams = 1;
  std::size_t workers = 1;
  Cipher cipher = Cipher::kAes128Gcm;
  Durability durability = Durability::kBatch;
  bool read_back = false;
  bool fail_if_locked = false;
  bool publish_tree = false;
  DirectIo direct_io = DirectIo::kAuto;
  std::uint32_t chunk_bytes = 64 * 1024;
  std::chrono::milliseconds timeout{20'000};
  std::chrono::milliseconds retry_for{60'000};
  std::uint64_t bandwidth_limit = 0;
  Selection selection;
  Changes changes;
  std::string source;
  std::string target;
  bool dry_run = false;
  bool compare = false;                 // a dry run
  std::int64_t frames_until_flip = -1;  // above the seal; negative: never
  // Told by a near end that sends: the relative path of what it has heard to be replicated.
  std::function<void(const std::string& path)> on_replicated;
  // Told by a near end that compares.
  std::function<void(const Difference& difference)> on_difference;
};

class FarEnd {
 public:
  FarEnd(Process& process, RunPlan& plan) : process_(process), plan_(plan) {}
  // Listens, and says how to be reached; nullopt when the process is dead.
  std::optional<transfer::FarAddress> announce();
  io::Task<void> run();
  // The remote shell closes its standard input.
  void leave_alone() { starter_gone_ = true; }

 private:
  Process& process_;
  RunPlan& plan_;
  CancelToken cancel_;
  std::optional<transfer::FarSession> session_;
  bool starter_gone_ = false;
};

class NearEnd final : private transfer::RunListener {
 public:
  NearEnd(Process& process, RunPlan& plan, transfer::FarHost& far_host)
      : process_(process), plan_(plan), far_host_(far_host) {}
  io::Task<void> run();
  // The whole run's, as the program would end.
  const TransferReport& report() const { return report_; }
  CancelToken& cancel() { return cancel_; }

 private:
  wire::Setup setup() const;
  void on_tick(transfer::Session& session, const ProgressSnapshot& progress) override;
  void on_note(const std::string& note) override;

  Process& process_;
  RunPlan& plan_;
  transfer::FarHost& far_host_;
  CancelToken cancel_;
  TransferReport report_;
  ProgressSnapshot shown_;
};

}  // namespace fgsync::sim
