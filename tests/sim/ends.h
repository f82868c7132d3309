// The two ends of a run as production has them (src/transfer/replicate.cc and serve.cc), without
// what stands around them there: a command line, a remote shell, a terminal. Everything from the
// connection on is the production code.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "fgsync/options.h"
#include "fgsync/report.h"
#include "fgsync/transfer.h"
#include "process.h"
#include "transfer/data_connections.h"
#include "transfer/roles.h"
#include "transport/connection.h"

namespace fgsync::sim {

struct RunPlan {
  bool push = true;
  std::uint16_t streams = 1;
  std::size_t workers = 1;
  Cipher cipher = Cipher::kAes128Gcm;
  DirectIo direct_io = DirectIo::kAuto;
  std::uint32_t chunk_bytes = 64 * 1024;
  std::chrono::milliseconds timeout{20'000};
  std::uint64_t bandwidth_limit = 0;
  std::string source;
  std::string target;
  std::int64_t frames_until_flip = -1;  // above the seal; negative: never
};

// What the remote shell would hand over.
struct Handover {
  io::SocketAddress address;
  transport::PreSharedKey key{};
  transport::SessionId session{};
};

class FarEnd {
 public:
  FarEnd(Process& process, RunPlan& plan) : process_(process), plan_(plan) {}
  // Listens; false when the process is dead.
  bool announce(Handover& handover);
  io::Task<void> run();
  // The remote shell closes its standard input.
  void leave_alone() { starter_gone_ = true; }
  const Status& status() const { return status_; }

 private:
  io::Task<void> watch_starter(io::Pause* pause);
  io::Task<void> serve_control(transport::TlsControl control);
  io::Task<void> take_role(transfer::Session* session, transfer::Role* role,
                           const transfer::SessionKeys* keys);

  Process& process_;
  RunPlan& plan_;
  Handover handover_;
  std::unique_ptr<transport::SessionListener> listener_;
  CancelToken cancel_;
  bool starter_gone_ = false;
  Status status_;
};

class NearEnd {
 public:
  NearEnd(Process& process, RunPlan& plan, Handover handover)
      : process_(process), plan_(plan), handover_(std::move(handover)) {}
  io::Task<void> run();
  // The whole run's, as the program would end.
  const TransferReport& report() const { return report_; }
  CancelToken& cancel() { return cancel_; }

 private:
  io::Task<void> with_session(transport::TlsControl control, io::TimePoint deadline);
  io::Task<void> take_role(transfer::Session* session, transfer::Role* role,
                           const transfer::SessionKeys* keys, io::TimePoint deadline);
  io::Task<Status> open_remote(transfer::Session* session);

  Process& process_;
  RunPlan& plan_;
  const Handover handover_;
  CancelToken cancel_;
  TransferReport report_;
};

}  // namespace fgsync::sim
