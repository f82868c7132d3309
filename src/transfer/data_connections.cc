#include "transfer/data_connections.h"

#include "base/mark.h"
#include "transfer/backoff.h"
#include "transport/tcp_stream.h"

namespace fgsync::transfer {
namespace {

using transport::Direction;
using Connection = DataStream::Connection;

// Streams are dealt to the workers in turn.
io::Io& worker_of(Session& session, std::size_t stream) {
  return session.runtime().worker(stream % session.runtime().worker_count());
}

// Which connection of which stream, and the direction in which this side seals.
struct Place {
  std::uint16_t stream = 0;
  std::uint32_t generation = 0;
  Direction sends = Direction::kFromInitiator;
};

Direction opposite(Direction direction) {
  return direction == Direction::kFromInitiator ? Direction::kToInitiator
                                                : Direction::kFromInitiator;
}

Result<std::unique_ptr<transport::FrameCipher>> make_cipher(const Session& session,
                                                            const SessionKeys& keys,
                                                            const Place& place,
                                                            Direction direction) {
  if (session.parameters.cipher == Cipher::kNone) return std::unique_ptr<transport::FrameCipher>();
  return transport::FrameCipher::create(session.parameters.cipher, keys.secret, place.stream,
                                        direction, place.generation);
}

// A stream over the proven connection.
Result<Connection> make_connection(Session& session, const SessionKeys& keys, const Place& place,
                                   io::Socket socket) {
  auto sealer = make_cipher(session, keys, place, place.sends);
  if (!sealer.ok()) return sealer.status();
  auto opener = make_cipher(session, keys, place, opposite(place.sends));
  if (!opener.ok()) return opener.status();
  transport::TcpStreamParts parts;
  parts.socket = std::move(socket);
  parts.sealer = std::move(*sealer);
  parts.opener = std::move(*opener);
  return Connection{transport::make_tcp_stream(worker_of(session, place.stream), std::move(parts),
                                               *session.pool, session.meter()),
                    place.generation};
}

struct First {
  Result<io::Socket> socket = Status(ErrorCode::kConnectionFailed, "not connected");
};

io::Task<void> connect_first(io::Io* io, const OutgoingConnections::Route* route,
                             const SessionKeys* keys, std::uint16_t stream, io::TimePoint deadline,
                             First* first) {
  transport::ConnectAttempt attempt;
  first->socket = co_await transport::connect_data(*io, route->peer, route->local, keys->secret,
                                                   keys->id, stream, 0, deadline, attempt);
}

}  // namespace

// ---- The initiator's.

io::Task<Status> OutgoingConnections::open() {
  const std::uint16_t count = session_.parameters.streams;
  const io::TimePoint deadline = session_.environment().now() + route_.connect_timeout;
  std::vector<First> firsts(count);
  io::TaskGroup connecting;
  for (std::uint16_t stream = 0; stream < count; ++stream) {
    io::Io& io = worker_of(session_, stream);
    connecting.spawn(io, connect_first(&io, &route_, &keys_, stream, deadline, &firsts[stream]));
  }
  co_await connecting.join(session_.control_io());
  for (const First& first : firsts) FGSYNC_CO_RETURN_IF_ERROR(first.socket.status());
  std::vector<std::unique_ptr<DataStream>> streams;
  for (std::uint16_t stream = 0; stream < count; ++stream) {
    const Place place{stream, 0, Direction::kFromInitiator};
    auto connection = make_connection(session_, keys_, place, std::move(*firsts[stream].socket));
    if (!connection.ok()) co_return connection.status();
    streams.push_back(
        std::make_unique<DataStream>(worker_of(session_, stream), std::move(*connection)));
  }
  session_.streams = std::move(streams);
  generations_.assign(count, 0);
  co_return Status();
}

io::Task<Result<Connection>> OutgoingConnections::replace(std::uint16_t stream, Status lost) {
  co_await io::resume_on(session_.control_io());
  const auto attempt = attempts_.emplace(attempts_.end(), session_.control_io());
  Result<Connection> next = co_await try_again(stream, std::move(lost), &*attempt);
  attempts_.erase(attempt);
  co_return next;
}

io::Task<Result<Connection>> OutgoingConnections::try_again(std::uint16_t stream, Status lost,
                                                            Attempt* attempt) {
  io::Io& io = session_.control_io();
  const io::TimePoint give_up = io.environment().now() + route_.retry_for;
  Backoff backoff(io.environment());
  Status last = lost;
  while (!stopped_) {
    const io::Duration wait = backoff.next();
    if (io.environment().now() + wait >= give_up) {
      mark("data_connection_given_up");
      co_return last;
    }
    const bool on = co_await attempt->pause.sleep_for(wait);
    if (!on) break;
    const io::TimePoint deadline =
        std::min(give_up, io.environment().now() + route_.connect_timeout);
    const Place place{stream, ++generations_[stream], Direction::kFromInitiator};
    Result<io::Socket> socket =
        co_await transport::connect_data(io, route_.peer, route_.local, keys_.secret, keys_.id,
                                         stream, place.generation, deadline, attempt->connecting);
    if (socket.ok()) {
      mark("data_connection_made_again");
      session_.errors().note("a data connection was lost and made again: " + lost.message());
      co_return make_connection(session_, keys_, place, std::move(*socket));
    }
    last = socket.status();
    // Whoever answers there is not the far side.
    if (last.code() == ErrorCode::kUnauthenticated) co_return last;
    mark("data_connection_not_made_again_yet");
  }
  co_return Status(ErrorCode::kCancelled, "not needed any more");
}

void OutgoingConnections::stop() {
  stopped_ = true;
  for (Attempt& attempt : attempts_) {
    attempt.pause.end();
    attempt.connecting.give_up();
  }
}

// ---- The far side's.

io::Task<Status> IncomingConnections::open() {
  listener_.expect_streams(session_.parameters.streams);
  io::Io& io = session_.control_io();
  const io::DeadlineGuard guard(io, io.environment().now() + patience_,
                                [this] { listener_.end_waiting(); });
  std::vector<std::unique_ptr<DataStream>> streams;
  for (std::uint16_t stream = 0; stream < session_.parameters.streams; ++stream) {
    auto accepted = co_await listener_.accept_data(io, stream);
    if (!accepted.ok()) co_return accepted.status();
    const Place place{stream, accepted->generation, Direction::kToInitiator};
    auto connection = make_connection(session_, keys_, place, std::move(accepted->socket));
    if (!connection.ok()) co_return connection.status();
    streams.push_back(
        std::make_unique<DataStream>(worker_of(session_, stream), std::move(*connection)));
  }
  session_.streams = std::move(streams);
  // The initiator connects again only what it has given up: a connection that is silently dead is
  // noticed here by the one that comes in its place.
  listener_.on_newer([this](std::uint16_t stream, std::uint32_t generation) {
    session_.streams[stream]->drop(generation - 1);
  });
  co_return Status();
}

io::Task<Result<Connection>> IncomingConnections::replace(std::uint16_t stream, Status /*lost*/) {
  auto accepted = co_await listener_.accept_data(worker_of(session_, stream), stream);
  if (!accepted.ok()) co_return Status(ErrorCode::kCancelled, accepted.status().message());
  const Place place{stream, accepted->generation, Direction::kToInitiator};
  co_return make_connection(session_, keys_, place, std::move(accepted->socket));
}

}  // namespace fgsync::transfer
