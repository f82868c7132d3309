// The far side of a run once it listens: one session, served to its end, whatever started it.
#pragma once

#include <functional>
#include <memory>

#include "fgsync/transfer.h"
#include "io/pause.h"
#include "transfer/data_connections.h"
#include "transfer/roles.h"
#include "transport/connection.h"

namespace fgsync::transfer {

// On the control worker.
class FarSession {
 public:
  struct Settings {
    std::uint16_t streams_max = 1;
    // Whether the one who started it is gone: then it ends. Asked ten times a second.
    std::function<bool()> starter_is_gone;
    DecorateConnections decorate;
  };
  // `key` and `id` are those of the session that the listener's address is handed out with.
  FarSession(io::Runtime& runtime, io::Socket listener, const transport::PreSharedKey& key,
             const transport::SessionId& id, Settings settings, CancelToken& cancel);

  // Waits for the session and serves it. Once.
  io::Task<void> run();
  // After run(): how it went.
  const Status& status() const { return status_; }

 private:
  io::Task<void> watch_starter(io::Pause* pause);
  io::Task<void> serve_control(transport::TlsControl control);
  io::Task<void> take_role(Session* session, Role* role, const SessionKeys* keys);

  io::Runtime& runtime_;
  const transport::SessionId id_;
  const Settings settings_;
  CancelToken& cancel_;
  transport::SessionListener listener_;
  Status status_;
};

}  // namespace fgsync::transfer
