#include "io/operation_steps.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/assert.h"

namespace fgsync::io {
namespace {

// The smallest block that direct I/O works in (open(2)). A direct read that ends between blocks
// ended with the file; asking for the rest, from an offset off a block, would fail with EINVAL.
constexpr std::size_t kSectorBytes = 512;

std::int64_t transfer_file(Operation& operation) {
  const bool reading = operation.kind == Operation::Kind::kRead;
  while (operation.vector_count > 0) {
    const iovec& piece = operation.vectors[0];
    const auto offset = static_cast<off_t>(operation.offset + operation.transferred);
    const ssize_t count =
        reading ? ::pread(operation.descriptor, piece.iov_base, piece.iov_len, offset)
                : ::pwrite(operation.descriptor, piece.iov_base, piece.iov_len, offset);
    if (count < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return -errno;
    }
    if (count == 0) {
      if (!reading) return -EIO;  // a regular file that takes nothing and gives no reason
      break;
    }
    if (absorb(operation, static_cast<std::size_t>(count))) break;
  }
  return static_cast<std::int64_t>(operation.transferred);
}

}  // namespace

bool absorb(Operation& operation, std::size_t count) {
  const std::size_t absorbed = count;
  operation.transferred += count;
  int done = 0;
  while (done < operation.vector_count && count >= operation.vectors[done].iov_len) {
    count -= operation.vectors[done].iov_len;
    ++done;
  }
  std::move(operation.vectors + done, operation.vectors + operation.vector_count,
            operation.vectors);
  operation.vector_count -= done;
  if (operation.vector_count == 0) {
    FGSYNC_ASSERT(count == 0);
    return true;
  }
  iovec& first = operation.vectors[0];
  first.iov_base = static_cast<std::byte*>(first.iov_base) + count;
  first.iov_len -= count;
  if (operation.kind == Operation::Kind::kReceive) return !operation.wait_all;
  return operation.kind == Operation::Kind::kRead && absorbed % kSectorBytes != 0;
}

int message_flags(const Operation& operation) {
  if (operation.kind == Operation::Kind::kReceive) {
    return MSG_NOSIGNAL | (operation.wait_all ? MSG_WAITALL : 0);
  }
  return MSG_NOSIGNAL | (operation.more_follows ? MSG_MORE : 0);
}

void set_nonblocking(int descriptor, bool nonblocking) {
  const int before = ::fcntl(descriptor, F_GETFL);
  const int after = nonblocking ? before | O_NONBLOCK : before & ~O_NONBLOCK;
  if (before >= 0 && before != after) (void)::fcntl(descriptor, F_SETFL, after);
}

std::int64_t begin_connect(const Operation& operation) {
  const SocketAddress& peer = *operation.address;
  set_nonblocking(operation.descriptor, true);
  const int outcome = ::connect(operation.descriptor, peer.system(), peer.system_length());
  const int error = outcome == 0 ? 0 : errno;
  set_nonblocking(operation.descriptor, false);
  // Interrupted, it goes on in the background like one in progress (connect(2)).
  return error == EINTR ? -EINPROGRESS : -error;
}

std::int64_t end_connect(const Operation& operation) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(operation.descriptor, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return -errno;
  if (error != 0) return -error;
  // A shutdown from elsewhere may end the attempt without leaving an error.
  sockaddr_storage peer{};
  socklen_t peer_length = sizeof peer;
  if (::getpeername(operation.descriptor, reinterpret_cast<sockaddr*>(&peer), &peer_length) != 0) {
    return -ECONNABORTED;
  }
  return 0;
}

void run_blocking_operation(Operation& operation) {
  if (operation.kind == Operation::Kind::kRun) {
    operation.job();
    operation.result = 0;
    return;
  }
  operation.result = transfer_file(operation);
}

}  // namespace fgsync::io
