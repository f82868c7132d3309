// Socket::shutdown from another thread ends whatever is in flight on the socket.
#include <netinet/in.h>
#include <sys/socket.h>

#include "engine_fixture.h"

namespace fgsync::io::testing {
namespace {

class SocketShutdownTest : public EngineTest {};
FGSYNC_FOR_EACH_ENGINE(SocketShutdownTest);

// Posted behind an operation on the same worker, so that the operation is in flight by then.
Task<void> shut_down_from_elsewhere(const Socket& socket) {
  std::thread([&socket] { socket.shutdown(); }).join();
  co_return;
}

Task<void> accept_and_keep(Io& io, const Socket& listener, Status& status) {
  const Result<Socket> accepted = co_await accept(io, listener);
  status = accepted.status();
}

Task<void> connect_and_keep(Io& io, const Socket& socket, SocketAddress peer, Status& status) {
  Status connected = co_await connect(io, socket, peer);
  status = std::move(connected);
}

Task<void> end_accept(Io& io) {
  const Result<Socket> listener = io.environment().network().listen(address_of("127.0.0.1"));
  Status status;
  TaskGroup group;
  group.spawn(io, accept_and_keep(io, *listener, status));
  group.spawn(io, shut_down_from_elsewhere(*listener));
  co_await group.join(io);
  EXPECT_EQ(status.code(), ErrorCode::kConnectionLost) << status.message();
}

TEST_P(SocketShutdownTest, EndsAnAccept) { runtime().run(end_accept(runtime().control())); }

Task<void> end_receive(Io& io) {
  Connection connection = co_await make_connection(io);
  std::vector<std::byte> bytes(10);
  Status status;
  TaskGroup group;
  group.spawn(io, receive_and_keep(io, connection.near, bytes, status));
  group.spawn(io, shut_down_from_elsewhere(connection.near));
  co_await group.join(io);
  EXPECT_EQ(status.code(), ErrorCode::kConnectionLost) << status.message();
}

TEST_P(SocketShutdownTest, EndsAReceive) { runtime().run(end_receive(runtime().control())); }

Task<void> end_receive_half_way(Io& io) {
  Connection connection = co_await make_connection(io);
  const std::vector<std::byte> sent = pattern(5);
  const Status sending = co_await send_all(io, connection.far, sent);
  EXPECT_TRUE(sending.ok());
  std::vector<std::byte> bytes(10);
  Status status;
  TaskGroup group;
  group.spawn(io, receive_and_keep(io, connection.near, bytes, status));
  group.spawn(io, shut_down_from_elsewhere(connection.near));
  co_await group.join(io);
  EXPECT_EQ(status.code(), ErrorCode::kConnectionLost) << status.message();
}

TEST_P(SocketShutdownTest, EndsAReceiveThatHasHalfOfItsBytes) {
  runtime().run(end_receive_half_way(runtime().control()));
}

Task<void> end_send(Io& io) {
  Connection connection = co_await make_connection(io);
  const std::vector<std::byte> bytes(64 * 1024 * 1024);  // more than sockets hold: nobody receives
  Status status;
  TaskGroup group;
  group.spawn(io, send_and_keep(io, connection.near, bytes, status));
  group.spawn(io, shut_down_from_elsewhere(connection.near));
  co_await group.join(io);
  EXPECT_EQ(status.code(), ErrorCode::kConnectionLost) << status.message();
}

TEST_P(SocketShutdownTest, EndsASend) { runtime().run(end_send(runtime().control())); }

// A listener that takes no more connections: the kernel drops further attempts, which keep trying.
class FullListener {
 public:
  FullListener() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const SocketAddress any = address_of("127.0.0.1");
    EXPECT_EQ(::bind(listener_, any.system(), any.system_length()), 0);
    EXPECT_EQ(::listen(listener_, 0), 0);
    sockaddr_storage storage{};
    socklen_t length = sizeof storage;
    auto* const system = reinterpret_cast<sockaddr*>(&storage);
    EXPECT_EQ(::getsockname(listener_, system, &length), 0);
    address_ = SocketAddress::from_system(system, length);
    for (int& filler : fillers_) {
      filler = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      (void)::connect(filler, address_.system(), address_.system_length());
    }
  }
  FullListener(const FullListener&) = delete;
  FullListener& operator=(const FullListener&) = delete;
  ~FullListener() {
    for (const int filler : fillers_) ::close(filler);
    ::close(listener_);
  }
  const SocketAddress& address() const { return address_; }

 private:
  int listener_;
  int fillers_[4];
  SocketAddress address_;
};

Task<void> end_connect(Io& io, const FullListener& listener) {
  const Result<Socket> socket = io.environment().network().create(listener.address(), std::nullopt);
  Status status;
  TaskGroup group;
  group.spawn(io, connect_and_keep(io, *socket, listener.address(), status));
  group.spawn(io, shut_down_from_elsewhere(*socket));
  co_await group.join(io);
  EXPECT_EQ(status.code(), ErrorCode::kConnectionFailed) << status.message();
}

TEST_P(SocketShutdownTest, EndsAConnect) {
  const FullListener listener;
  runtime().run(end_connect(runtime().control(), listener));
}

Task<void> connect_until(Io& io, const FullListener& listener) {
  const Result<Socket> socket = io.environment().network().create(listener.address(), std::nullopt);
  const Socket& connecting = *socket;
  DeadlineGuard guard(io, io.environment().now(), [&connecting] { connecting.shutdown(); });
  const Status connected = co_await connect(io, connecting, listener.address());
  EXPECT_EQ(connected.code(), ErrorCode::kConnectionFailed) << connected.message();
  EXPECT_TRUE(guard.expired());
}

TEST_P(SocketShutdownTest, ADeadlineThatIsOverAlreadyEndsAConnect) {
  const FullListener listener;
  runtime().run(connect_until(runtime().control(), listener));
}

Task<void> end_both_directions(Io& io) {
  Connection connection = co_await make_connection(io);
  const std::vector<std::byte> sent(64 * 1024 * 1024);
  std::vector<std::byte> received(10);
  Status sending;
  Status receiving;
  TaskGroup group;
  group.spawn(io, send_and_keep(io, connection.near, sent, sending));
  group.spawn(io, receive_and_keep(io, connection.near, received, receiving));
  group.spawn(io, shut_down_from_elsewhere(connection.near));
  co_await group.join(io);
  EXPECT_EQ(sending.code(), ErrorCode::kConnectionLost) << sending.message();
  EXPECT_EQ(receiving.code(), ErrorCode::kConnectionLost) << receiving.message();
}

TEST_P(SocketShutdownTest, EndsASendAndAReceiveOfOneSocket) {
  runtime().run(end_both_directions(runtime().control()));
}

}  // namespace
}  // namespace fgsync::io::testing
