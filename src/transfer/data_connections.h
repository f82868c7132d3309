// Where a session's data connections come from, once its control connection stands: at the
// beginning all of them, or none; later one for each that is lost. The initiator connects them, the
// far side takes what comes.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "io/pause.h"
#include "transfer/session.h"
#include "transport/connection.h"
#include "transport/session_secret.h"

namespace fgsync::transfer {

// What a data connection needs to know of its session.
struct SessionKeys {
  transport::SessionSecret secret;
  transport::SessionId id;
};

class DataConnections {
 public:
  virtual ~DataConnections() = default;
  // Fills session.streams, as many as were agreed on. On the control worker, once.
  virtual io::Task<Status> open() = 0;
  // The next connection for a stream whose last one is gone for the reason `lost`, however long
  // that takes. kCancelled after stop(); else why there will be none. May end on another worker
  // than it was called on.
  virtual io::Task<Result<DataStream::Connection>> replace(std::uint16_t stream, Status lost) = 0;
  // None are needed any more: replace() returns, now and later. On the control worker.
  virtual void stop() = 0;
};

// What a session's connections are put into, where somebody wants to look at what goes over them or
// to disturb it. Empty: nothing.
using DecorateConnections = std::function<std::unique_ptr<DataConnections>(
    Session& session, std::unique_ptr<DataConnections> connections)>;
inline std::unique_ptr<DataConnections> decorated(const DecorateConnections& decorate,
                                                  Session& session,
                                                  std::unique_ptr<DataConnections> connections) {
  return decorate ? decorate(session, std::move(connections)) : std::move(connections);
}

// The initiator's: connects to `peer`, from `local` if given.
class OutgoingConnections final : public DataConnections {
 public:
  struct Route {
    io::SocketAddress peer;
    std::optional<io::SocketAddress> local;
    std::chrono::milliseconds connect_timeout;
    std::chrono::milliseconds retry_for;  // how long a lost connection is tried again
  };
  OutgoingConnections(Session& session, const SessionKeys& keys, const Route& route)
      : session_(session), keys_(keys), route_(route) {}

  io::Task<Status> open() override;
  io::Task<Result<DataStream::Connection>> replace(std::uint16_t stream, Status lost) override;
  void stop() override;

 private:
  // One stream that is being connected again.
  struct Attempt {
    explicit Attempt(io::Io& io) : pause(io) {}
    io::Pause pause;
    transport::ConnectAttempt connecting;
  };
  io::Task<Result<DataStream::Connection>> try_again(std::uint16_t stream, Status lost,
                                                     Attempt* attempt);

  Session& session_;
  const SessionKeys& keys_;
  const Route route_;
  // Control worker only.
  std::vector<std::uint32_t> generations_;  // the last one tried for each stream
  std::list<Attempt> attempts_;
  bool stopped_ = false;
};

// The far side's: takes them from the listener, which must stay until the session has ended.
class IncomingConnections final : public DataConnections {
 public:
  IncomingConnections(Session& session, const SessionKeys& keys,
                      transport::SessionListener& listener, std::chrono::milliseconds patience)
      : session_(session), keys_(keys), listener_(listener), patience_(patience) {}
  ~IncomingConnections() override { listener_.on_newer({}); }

  io::Task<Status> open() override;
  io::Task<Result<DataStream::Connection>> replace(std::uint16_t stream, Status lost) override;
  void stop() override { listener_.end_waiting(); }

 private:
  Session& session_;
  const SessionKeys& keys_;
  transport::SessionListener& listener_;
  const std::chrono::milliseconds patience_;  // for all connections to be there at the beginning
};

}  // namespace fgsync::transfer
