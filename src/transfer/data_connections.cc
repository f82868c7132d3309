#include "transfer/data_connections.h"

#include "transport/tcp_stream.h"

namespace fgsync::transfer {
namespace {

using transport::Direction;

// Streams are dealt to the workers in turn.
io::Io& worker_of(Session& session, std::size_t stream) {
  return session.runtime().worker(stream % session.runtime().worker_count());
}

Result<std::unique_ptr<transport::FrameCipher>> make_cipher(const Session& session,
                                                            const SessionKeys& keys,
                                                            std::uint16_t stream,
                                                            Direction direction) {
  if (session.parameters.cipher == Cipher::kNone) return std::unique_ptr<transport::FrameCipher>();
  return transport::FrameCipher::create(session.parameters.cipher, keys.secret, stream, direction);
}

// A stream over the proven connection; `sends` is the direction in which this side seals.
Result<DataStream> make_stream(Session& session, const SessionKeys& keys, std::uint16_t stream,
                               io::Socket socket, Direction sends) {
  const Direction receives =
      sends == Direction::kFromInitiator ? Direction::kToInitiator : Direction::kFromInitiator;
  auto sealer = make_cipher(session, keys, stream, sends);
  if (!sealer.ok()) return sealer.status();
  auto opener = make_cipher(session, keys, stream, receives);
  if (!opener.ok()) return opener.status();
  io::Io& io = worker_of(session, stream);
  transport::TcpStreamParts parts;
  parts.socket = std::move(socket);
  parts.sealer = std::move(*sealer);
  parts.opener = std::move(*opener);
  DataStream data;
  data.stream = transport::make_tcp_stream(io, std::move(parts), *session.pool, session.meter());
  data.io = &io;
  return data;
}

struct Attempt {
  Result<io::Socket> socket = Status(ErrorCode::kConnectionFailed, "not connected");
};

io::Task<void> connect_one(io::Io* io, io::SocketAddress peer,
                           std::optional<io::SocketAddress> local, const SessionKeys* keys,
                           std::uint16_t stream, io::TimePoint deadline, Attempt* attempt) {
  attempt->socket =
      co_await transport::connect_data(*io, peer, local, keys->secret, keys->id, stream, deadline);
}

}  // namespace

io::Task<Status> connect_streams(Session& session, const SessionKeys& keys, io::SocketAddress peer,
                                 std::optional<io::SocketAddress> local, io::TimePoint deadline) {
  std::vector<Attempt> attempts(session.parameters.streams);
  io::TaskGroup connecting;
  for (std::uint16_t stream = 0; stream < session.parameters.streams; ++stream) {
    io::Io& io = worker_of(session, stream);
    connecting.spawn(io, connect_one(&io, peer, local, &keys, stream, deadline, &attempts[stream]));
  }
  co_await connecting.join(session.control_io());
  for (const Attempt& attempt : attempts) FGSYNC_CO_RETURN_IF_ERROR(attempt.socket.status());
  std::vector<DataStream> streams;
  for (std::uint16_t stream = 0; stream < attempts.size(); ++stream) {
    Result<DataStream> made = make_stream(
        session, keys, stream, std::move(*attempts[stream].socket), Direction::kFromInitiator);
    if (!made.ok()) co_return made.status();
    streams.push_back(std::move(*made));
  }
  session.streams = std::move(streams);
  co_return Status();
}

io::Task<Status> accept_streams(Session& session, const SessionKeys& keys,
                                transport::SessionListener& listener, io::TimePoint deadline) {
  auto accepted = co_await listener.accept_data(session.parameters.streams, deadline);
  if (!accepted.ok()) co_return accepted.status();
  std::vector<DataStream> streams(accepted->size());
  for (auto& connection : *accepted) {
    Result<DataStream> made = make_stream(session, keys, connection.stream,
                                          std::move(connection.socket), Direction::kToInitiator);
    if (!made.ok()) co_return made.status();
    streams[connection.stream] = std::move(*made);
  }
  session.streams = std::move(streams);
  co_return Status();
}

}  // namespace fgsync::transfer
