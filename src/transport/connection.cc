// The initiator's half of connection.h; session_listener.cc is the acceptor's.
#include "transport/connection.h"

#include "base/mark.h"
#include "io/sync.h"
#include "transport/preamble.h"

namespace fgsync::transport {
namespace {

// Every way of not getting a connection, under the three codes that the caller knows.
Status connection_failure(const Status& failure, bool expired, const io::SocketAddress& peer) {
  const std::string doing = "connecting to " + peer.text();
  if (expired || failure.code() == ErrorCode::kTimeout) {
    mark("connect_timeout");
    return Status(ErrorCode::kConnectTimeout, doing + ": no answer in time");
  }
  if (failure.code() == ErrorCode::kConnectionFailed) return failure;  // says all that by itself
  const ErrorCode code = failure.code() == ErrorCode::kUnauthenticated
                             ? ErrorCode::kUnauthenticated
                             : ErrorCode::kConnectionFailed;
  return Status(code, doing + ": " + failure.message(), failure.system_errno());
}

io::Task<Status> connect_and_introduce(io::Io& io, const io::Socket& socket,
                                       const io::SocketAddress& peer,
                                       const PreambleBytes& preamble) {
  Status connected = co_await io::connect(io, socket, peer);
  FGSYNC_CO_RETURN_IF_ERROR(std::move(connected));
  Status sent = co_await io::send_all(io, socket, preamble);
  co_return sent;
}

// The acceptor answers with a MAC of its own: it has the session's secret too.
io::Task<Status> check_answer(io::Io& io, const io::Socket& socket, const SessionSecret& secret,
                              const PreambleBytes& preamble) {
  Mac answer;
  Status received = co_await io::receive_exactly(io, socket, answer);
  FGSYNC_CO_RETURN_IF_ERROR(std::move(received));
  const Mac expected = secret.join_mac(covered_by_mac(preamble), Direction::kToInitiator);
  if (!equal_secret(answer, expected)) {
    co_return Status(ErrorCode::kUnauthenticated, "the peer does not have the session's secret");
  }
  co_return Status();
}

}  // namespace

io::Task<Result<TlsControl>> connect_control(io::Io& io, io::SocketAddress peer,
                                             std::optional<io::SocketAddress> local,
                                             PreSharedKey key, SessionId session,
                                             io::TimePoint deadline) {
  Result<io::Socket> socket = io.environment().network().create(peer, local);
  if (!socket.ok()) co_return connection_failure(socket.status(), false, peer);
  {
    const io::Socket* const connecting = &*socket;
    const io::DeadlineGuard guard(io, deadline, [connecting] { connecting->shutdown(); });
    const PreambleBytes preamble = control_preamble(session);
    Status introduced = co_await connect_and_introduce(io, *connecting, peer, preamble);
    if (guard.expired() || !introduced.ok()) {
      co_return connection_failure(introduced, guard.expired(), peer);
    }
  }
  Result<TlsControl> control = co_await establish_tls_control(
      io, std::move(*socket), TlsRole::kInitiator, key, session, deadline);
  wipe(key);
  if (!control.ok()) co_return connection_failure(control.status(), false, peer);
  co_return control;
}

io::Task<Result<io::Socket>> connect_data(io::Io& io, io::SocketAddress peer,
                                          std::optional<io::SocketAddress> local,
                                          const SessionSecret& secret, SessionId session,
                                          std::uint16_t stream, std::uint32_t generation,
                                          io::TimePoint deadline, ConnectAttempt& attempt) {
  const Status given_up(ErrorCode::kCancelled, "connecting: not needed any more");
  if (attempt.is_given_up()) co_return given_up;
  Result<io::Socket> socket = io.environment().network().create(peer, local);
  if (!socket.ok()) co_return connection_failure(socket.status(), false, peer);
  const io::Socket* const connecting = &*socket;
  const io::DeadlineGuard guard(io, deadline, [connecting] { connecting->shutdown(); });
  attempt.watch(connecting);
  const PreambleBytes preamble = data_preamble(session, stream, generation, secret);
  Status proven = co_await connect_and_introduce(io, *connecting, peer, preamble);
  if (proven.ok()) proven = co_await check_answer(io, *connecting, secret, preamble);
  attempt.watch(nullptr);
  if (attempt.is_given_up()) co_return given_up;
  if (guard.expired() || !proven.ok()) {
    co_return connection_failure(proven, guard.expired(), peer);
  }
  co_return socket;
}

}  // namespace fgsync::transport
