// Connections of a session: how they open, and how a data connection proves that it belongs.
//
// One port takes them all. A connection opens with a preamble of kPreambleBytes; the control
// connection goes on with TLS, a data connection's preamble ends in a MAC under a key of the
// session, which is checked before anything else is read, and is answered with the acceptor's own
// MAC. preamble.h has the bytes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/limits.h"
#include "io/io.h"
#include "transport/session_secret.h"
#include "transport/tls_control_stream.h"

namespace fgsync::transport {

inline constexpr std::size_t kPreambleBytes = 64;
// A connection that has not proved itself by then is closed.
inline constexpr std::chrono::seconds kHandshakeDeadline{10};
// Connections that have not proved themselves yet; more are closed at once. A session's own streams
// may all come at the same moment, with 32 strangers between them.
inline constexpr std::size_t kUnprovenMax = limits::kStreamsMax + 32;

// Initiator: connects the control connection and authenticates. kConnectTimeout, kConnectionFailed,
// kUnauthenticated.
io::Task<Result<TlsControl>> connect_control(io::Io& io, io::SocketAddress peer,
                                             std::optional<io::SocketAddress> local,
                                             PreSharedKey key, SessionId session,
                                             io::TimePoint deadline);

// Initiator: connects data connection number `stream`, on the worker that will use it. `secret`
// must stay until it returns. Fails as connect_control does.
io::Task<Result<io::Socket>> connect_data(io::Io& io, io::SocketAddress peer,
                                          std::optional<io::SocketAddress> local,
                                          const SessionSecret& secret, SessionId session,
                                          std::uint16_t stream, io::TimePoint deadline);

// Acceptor: serves one session's listener on the control worker. Accepts, authenticates each
// connection beside the others within kHandshakeDeadline, hands out the one control connection and
// then the data connections; whatever does not prove itself is closed and forgotten.
class SessionListener {
 public:
  SessionListener(io::Io& io, io::Socket listener, PreSharedKey key, SessionId session);
  SessionListener(const SessionListener&) = delete;
  SessionListener& operator=(const SessionListener&) = delete;
  ~SessionListener();

  // The authenticated control connection; kConnectTimeout at the deadline, kCancelled after stop().
  // Once.
  io::Task<Result<TlsControl>> accept_control(io::TimePoint deadline);
  // All proven data connections below `streams`, each number once, in the order they come.
  // kConnectTimeout at the deadline, kCancelled after stop(). After accept_control, once.
  struct DataConnection {
    std::uint16_t stream = 0;
    io::Socket socket;
  };
  io::Task<Result<std::vector<DataConnection>>> accept_data(std::uint16_t streams,
                                                            io::TimePoint deadline);
  // Makes accept_control and accept_data return as after stop(). Any thread.
  void end_waiting();
  // Closes the listener and whatever is unproven and makes the calls in flight return; must be
  // awaited, and those must have returned, before the object goes away.
  io::Task<void> stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fgsync::transport
