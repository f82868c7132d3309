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
#include <functional>
#include <memory>
#include <optional>

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

// Lets another coroutine of the same worker end an attempt to connect.
class ConnectAttempt {
 public:
  // For good: an attempt that has not begun yet does not begin.
  void give_up() {
    given_up_ = true;
    if (socket_ != nullptr) socket_->shutdown();
  }
  bool is_given_up() const { return given_up_; }
  // For connect_data: what it waits for, nullptr when nothing any more.
  void watch(const io::Socket* socket) { socket_ = socket; }

 private:
  const io::Socket* socket_ = nullptr;
  bool given_up_ = false;
};

// Initiator: connects stream number `stream`. `generation` counts the connections of one stream,
// also those that failed: each has a higher one than all before, so that no key is used twice.
// `secret` and `attempt` must stay until it returns. Fails as connect_control does, and with
// kCancelled when the attempt was given up.
io::Task<Result<io::Socket>> connect_data(io::Io& io, io::SocketAddress peer,
                                          std::optional<io::SocketAddress> local,
                                          const SessionSecret& secret, SessionId session,
                                          std::uint16_t stream, std::uint32_t generation,
                                          io::TimePoint deadline, ConnectAttempt& attempt);

// Acceptor: serves one session's listener on the control worker, for as long as the session lives.
// Accepts, authenticates each connection beside the others within kHandshakeDeadline, hands out the
// one control connection and then the data connections; whatever does not prove itself is closed
// and forgotten.
class SessionListener {
 public:
  SessionListener(io::Io& io, io::Socket listener, PreSharedKey key, SessionId session);
  SessionListener(const SessionListener&) = delete;
  SessionListener& operator=(const SessionListener&) = delete;
  ~SessionListener();

  // The authenticated control connection; kConnectTimeout at the deadline, kCancelled after stop().
  // Once.
  io::Task<Result<TlsControl>> accept_control(io::TimePoint deadline);
  // How many streams were agreed on: connections of others are closed from now on. After
  // accept_control.
  void expect_streams(std::uint16_t streams);
  // The next proven connection of stream number `stream`, which has a higher generation than all
  // that came before; of several that wait the newest. kConnectTimeout after end_waiting(),
  // kCancelled after stop(). On any worker, `io`; one call at a time for each stream.
  struct DataConnection {
    std::uint32_t generation = 0;
    io::Socket socket;
  };
  io::Task<Result<DataConnection>> accept_data(io::Io& io, std::uint16_t stream);
  // What to call with each data connection that proves itself; on the control worker, where it may
  // be set at any time. Empty: nothing.
  void on_newer(std::function<void(std::uint16_t stream, std::uint32_t generation)> tell);
  // No waiting any more: accept_control and accept_data return, now and later, and data connections
  // that nobody has taken are closed. Any thread.
  void end_waiting();
  // Closes the listener and whatever is not handed out and makes the calls in flight return; must
  // be awaited, and those must have returned, before the object goes away.
  io::Task<void> stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fgsync::transport
