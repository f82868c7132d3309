// A run whose other half is on another host: a far side is started there and a session made with
// it; and both again, when the connection is lost, until the run is done with.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fgsync/transfer.h"
#include "transfer/backoff.h"
#include "transfer/data_connections.h"
#include "transfer/report_builder.h"
#include "transfer/roles.h"
#include "transfer/run_progress.h"
#include "transport/session_secret.h"
#include "wire/message.h"

namespace fgsync::transfer {

// How to reach a far side that waits for its session.
struct FarAddress {
  io::SocketAddress peer;
  std::optional<io::SocketAddress> local;
  transport::PreSharedKey key{};
  transport::SessionId session{};
  std::string advice;  // what to say when it can't be reached; may be empty
};

// The far host: what starts far sides there. On the control worker.
class FarHost {
 public:
  virtual ~FarHost() = default;
  // Starts one, once the one before is finished with. Waits as long as `patience`.
  virtual io::Task<Result<FarAddress>> start(std::chrono::milliseconds patience) = 0;
  // Lets the one that was started end; nothing if none was.
  virtual io::Task<void> finish(bool succeeded) = 0;
  // Its standing output must not fill up. Ten times a second.
  virtual void drain() {}
};

// Whoever wants to know how the run gets on. On the control worker.
class RunListener {
 public:
  virtual ~RunListener() = default;
  // Ten times a second, and once at the end of each session.
  virtual void on_tick(Session& session, const ProgressSnapshot& progress) = 0;
  virtual void on_note(const std::string& note) = 0;
};

class RemoteRun {
 public:
  struct Plan {
    wire::Setup setup;                 // what is proposed; it says which side sends
    std::vector<std::string> sources;  // this side's, if it sends
    std::string target;                // this side's, if it receives
    std::vector<std::string>
        listed_paths;           // for the sender, if the setup says that there is a list
    std::string host;           // the far one, for people
    std::string source_prefix;  // in front of paths there, for people: "HOST:" or nothing
    std::string target_prefix;
    bool wants_changes = false;
    bool names_far_engine = false;  // if it is not this side's
    std::chrono::milliseconds connect_timeout{};
    std::chrono::milliseconds retry_for{};
    DecorateConnections decorate;
  };
  RemoteRun(io::Runtime& runtime, Plan plan, FarHost& far_host, RunListener& listener,
            CancelToken& cancel);

  // To the end. Fills in what the sessions amount to, their notes behind those that are there.
  io::Task<void> run(TransferReport* report);

 private:
  // What one session came to.
  struct Outcome {
    TransferReport report;
    bool stood = false;     // both sides knew what was to be done
    bool advanced = false;  // something is there for good, or less is missing than before
    FoundAtStart found;     // when this one began
  };
  io::Task<void> make_session(Outcome* outcome);
  io::Task<void> with_session(Session* session, const FarAddress* far, const SessionKeys* keys,
                              io::TimePoint deadline, Outcome* outcome);
  io::Task<void> take_role(Session* session, Role* role, const FarAddress* far,
                           const SessionKeys* keys, io::TimePoint deadline);
  io::Task<Status> open(Session* session);
  void remember(FoundAtStart found, const TransferReport& run);
  void conclude(Session& session, Role& role, Outcome& outcome);
  // Whether to go on after a session that ended so; waits before it is time to.
  io::Task<bool> wait_to_try_again(Outcome* outcome);
  bool has_stood() const { return found_.has_value(); }
  Status not_recovered(const Status& last) const;
  io::Duration time_left() const;
  void note(const std::string& text);

  io::Runtime& runtime_;
  const Plan plan_;
  FarHost& far_host_;
  RunListener& listener_;
  CancelToken& cancel_;
  const io::TimePoint started_;
  RunProgress progress_;
  std::vector<std::string> notes_;
  Backoff backoff_;
  std::optional<FoundAtStart> found_;
  std::optional<std::uint64_t> missing_;     // bytes, when the last session had planned
  std::optional<io::TimePoint> lost_since_;  // nothing has advanced since
};

}  // namespace fgsync::transfer
