// The operations of io.h in terms of Operation: each one submission, and the meaning of its result.
#include <cerrno>

#include "base/assert.h"
#include "io/io.h"

namespace fgsync::io {
namespace {

iovec vector_of(std::span<const std::byte> bytes) {
  // The kernel's type serves both directions; a send only reads.
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

Status socket_error(ErrorCode code, std::int64_t result, const std::string& doing) {
  const int error = static_cast<int>(-result);
  return Status(code, Status::from_errno(error, doing).message(), error);
}

Status connection_lost(std::int64_t result, const std::string& doing) {
  return socket_error(ErrorCode::kConnectionLost, result, doing);
}

// Trouble of the one connection that was about to be accepted, not of the listener: the next one
// may be well. accept(2) asks for these to be treated like EAGAIN.
bool concerns_new_connection_only(std::int64_t result) {
  switch (-result) {
    case ECONNABORTED:
    case EPROTO:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
    case EPERM:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
      return true;
    default:
      return false;
  }
}

}  // namespace

Task<Result<Socket>> accept(Io& io, const Socket& listener) {
  for (;;) {
    OperationAwaiter accepting(io, Operation::Kind::kAccept);
    accepting.operation.descriptor = listener.descriptor();
    const std::int64_t result = co_await accepting;
    if (result >= 0) {
      Network& network = io.environment().network();
      Socket socket(&network, static_cast<int>(result));
      network.prepare_accepted(socket);
      co_return socket;
    }
    if (!concerns_new_connection_only(result)) co_return connection_lost(result, "accepting");
  }
}

Task<Status> connect(Io& io, const Socket& socket, const SocketAddress& peer) {
  const SocketAddress address = peer;
  OperationAwaiter connecting(io, Operation::Kind::kConnect);
  connecting.operation.descriptor = socket.descriptor();
  connecting.operation.address = &address;
  const std::int64_t result = co_await connecting;
  if (result >= 0) co_return Status();
  co_return socket_error(ErrorCode::kConnectionFailed, result, "connecting to " + address.text());
}

Task<Status> receive_exactly(Io& io, const Socket& socket, std::span<std::byte> bytes) {
  if (bytes.empty()) co_return Status();
  OperationAwaiter receiving(io, Operation::Kind::kReceive);
  receiving.operation.descriptor = socket.descriptor();
  receiving.operation.wait_all = true;
  receiving.operation.vectors[0] = vector_of(bytes);
  receiving.operation.vector_count = 1;
  const std::int64_t result = co_await receiving;
  if (result < 0) co_return connection_lost(result, "receiving");
  if (static_cast<std::size_t>(result) == bytes.size()) co_return Status();
  co_return Status(ErrorCode::kConnectionLost, "receiving: the peer closed the connection");
}

Task<Result<std::size_t>> receive_some(Io& io, const Socket& socket, std::span<std::byte> bytes) {
  FGSYNC_ASSERT(!bytes.empty());
  OperationAwaiter receiving(io, Operation::Kind::kReceive);
  receiving.operation.descriptor = socket.descriptor();
  receiving.operation.vectors[0] = vector_of(bytes);
  receiving.operation.vector_count = 1;
  const std::int64_t result = co_await receiving;
  if (result < 0) co_return connection_lost(result, "receiving");
  co_return static_cast<std::size_t>(result);
}

Task<Status> send_all(Io& io, const Socket& socket, std::span<const std::byte> first,
                      std::span<const std::byte> second, std::span<const std::byte> third,
                      bool more_follows) {
  OperationAwaiter sending(io, Operation::Kind::kSend);
  Operation& operation = sending.operation;
  operation.descriptor = socket.descriptor();
  operation.more_follows = more_follows;
  for (const std::span<const std::byte> piece : {first, second, third}) {
    if (!piece.empty()) operation.vectors[operation.vector_count++] = vector_of(piece);
  }
  if (operation.vector_count == 0) co_return Status();
  const std::int64_t result = co_await sending;
  if (result < 0) co_return connection_lost(result, "sending");
  FGSYNC_ASSERT(static_cast<std::size_t>(result) == first.size() + second.size() + third.size());
  co_return Status();
}

Task<Result<std::size_t>> read_direct(Io& io, const FileHandle& file, std::span<std::byte> bytes,
                                      std::uint64_t offset) {
  if (bytes.empty()) co_return std::size_t{0};
  OperationAwaiter reading(io, Operation::Kind::kRead);
  reading.operation.descriptor = file.descriptor();
  reading.operation.offset = offset;
  reading.operation.vectors[0] = vector_of(bytes);
  reading.operation.vector_count = 1;
  const std::int64_t result = co_await reading;
  if (result < 0) co_return Status::from_errno(static_cast<int>(-result), "reading");
  co_return static_cast<std::size_t>(result);
}

Task<Status> write_direct(Io& io, const FileHandle& file, std::span<const std::byte> bytes,
                          std::uint64_t offset) {
  if (bytes.empty()) co_return Status();
  OperationAwaiter writing(io, Operation::Kind::kWrite);
  writing.operation.descriptor = file.descriptor();
  writing.operation.offset = offset;
  writing.operation.vectors[0] = vector_of(bytes);
  writing.operation.vector_count = 1;
  const std::int64_t result = co_await writing;
  if (result < 0) co_return Status::from_errno(static_cast<int>(-result), "writing");
  co_return Status();
}

}  // namespace fgsync::io
