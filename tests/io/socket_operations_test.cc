#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstring>

#include "engine_fixture.h"

namespace fgsync::io::testing {
namespace {

class SocketOperationsTest : public EngineTest {};
FGSYNC_FOR_EACH_ENGINE(SocketOperationsTest);

Task<void> exchange_over(Io& io, const char* host) {
  Connection connection = co_await make_connection(io, host);
  const std::vector<std::byte> sent = pattern(1000);
  std::vector<std::byte> received(sent.size());
  const std::span<const std::byte> all(sent);
  const Status sending =
      co_await send_all(io, connection.near, all.first(1), all.subspan(1, 99), all.subspan(100));
  EXPECT_TRUE(sending.ok()) << sending.message();
  const Status receiving = co_await receive_exactly(io, connection.far, received);
  EXPECT_TRUE(receiving.ok()) << receiving.message();
  EXPECT_EQ(received, sent);
}

TEST_P(SocketOperationsTest, BytesInThreePiecesArriveOverIpv4) {
  runtime().run(exchange_over(runtime().control(), "127.0.0.1"));
}

TEST_P(SocketOperationsTest, BytesInThreePiecesArriveOverIpv6) {
  runtime().run(exchange_over(runtime().control(), "::1"));
}

int int_option(const Socket& socket, int level, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  EXPECT_EQ(::getsockopt(socket.descriptor(), level, option, &value, &length), 0);
  return value;
}

Task<void> check_options(Io& io) {
  Connection connection = co_await make_connection(io);
  for (const Socket* socket : {&connection.near, &connection.far}) {
    EXPECT_EQ(int_option(*socket, IPPROTO_TCP, TCP_NODELAY), 1);
    EXPECT_EQ(int_option(*socket, SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_EQ(int_option(*socket, IPPROTO_TCP, TCP_USER_TIMEOUT), 60'000);
  }
}

TEST_P(SocketOperationsTest, BothEndsNoticeAVanishedPeer) {
  runtime().run(check_options(runtime().control()));
}

// Small beside what is sent, but well above the loopback's segment of 64 KiB: less than two of
// those would wait for delayed acknowledgements.
void shrink_buffers(const Socket& socket) {
  const int bytes = 128 * 1024;
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

Task<void> send_much_through_little(Runtime& runtime) {
  Io& io = runtime.control();
  Connection connection = co_await make_connection(io);
  shrink_buffers(connection.near);
  const std::vector<std::byte> sent = pattern(64 * 1024 * 1024);
  std::vector<std::byte> received(sent.size());
  Status sending;
  Status receiving;
  TaskGroup group;
  group.spawn(runtime.worker(0), send_and_keep(runtime.worker(0), connection.near, sent, sending));
  group.spawn(runtime.worker(1),
              receive_and_keep(runtime.worker(1), connection.far, received, receiving));
  co_await group.join(io);
  EXPECT_TRUE(sending.ok()) << sending.message();
  EXPECT_TRUE(receiving.ok()) << receiving.message();
  EXPECT_TRUE(received == sent);
}

TEST_P(SocketOperationsTest, OneSendOf64MiBPassesASmallSocketBuffer) {
  runtime().run(send_much_through_little(runtime()));
}

Task<void> send_both_ways(Io& io) {
  Connection connection = co_await make_connection(io);
  shrink_buffers(connection.near);
  shrink_buffers(connection.far);
  const std::vector<std::byte> to_far = pattern(4 * 1024 * 1024, 1);
  const std::vector<std::byte> to_near = pattern(4 * 1024 * 1024, 2);
  std::vector<std::byte> at_far(to_far.size());
  std::vector<std::byte> at_near(to_near.size());
  Status outcomes[4];
  TaskGroup group;
  group.spawn(io, receive_and_keep(io, connection.near, at_near, outcomes[0]));
  group.spawn(io, receive_and_keep(io, connection.far, at_far, outcomes[1]));
  group.spawn(io, send_and_keep(io, connection.near, to_far, outcomes[2]));
  group.spawn(io, send_and_keep(io, connection.far, to_near, outcomes[3]));
  co_await group.join(io);
  for (const Status& outcome : outcomes) EXPECT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_TRUE(at_far == to_far);
  EXPECT_TRUE(at_near == to_near);
}

TEST_P(SocketOperationsTest, OneSocketSendsAndReceivesAtTheSameTime) {
  runtime().run(send_both_ways(runtime().control()));
}

Task<void> queue_sends(Io& io) {
  Connection connection = co_await make_connection(io);
  shrink_buffers(connection.near);
  const std::vector<std::byte> sent = pattern(3 * 1024 * 1024);
  std::vector<std::byte> received(sent.size());
  Status outcomes[2];
  TaskGroup group;
  group.spawn(io, send_and_keep(io, connection.near, sent, outcomes[0]));
  group.spawn(io, receive_and_keep(io, connection.far, received, outcomes[1]));
  co_await group.join(io);
  EXPECT_TRUE(received == sent);
  // The socket then goes to another use on another worker without a trace of the first.
  const Status again = co_await send_all(io, connection.far, std::span(sent).first(10));
  EXPECT_TRUE(again.ok()) << again.message();
  const Status back = co_await receive_exactly(io, connection.near, std::span(received).first(10));
  EXPECT_TRUE(back.ok()) << back.message();
}

TEST_P(SocketOperationsTest, ASocketServesInTheOtherDirectionAfterwards) {
  runtime().run(queue_sends(runtime().control()));
}

Task<void> move_between_workers(Runtime& runtime) {
  Connection connection = co_await make_connection(runtime.control());
  for (int round = 0; round < 20; ++round) {
    Io& io = runtime.worker(static_cast<std::size_t>(round) % 2);
    co_await resume_on(io);
    const std::vector<std::byte> sent = pattern(100, static_cast<std::uint64_t>(round));
    std::vector<std::byte> received(sent.size());
    Status outcomes[2];
    TaskGroup group;
    // The receiver waits first, so that the engine really has to watch the socket.
    group.spawn(io, receive_and_keep(io, connection.far, received, outcomes[0]));
    group.spawn(io, send_and_keep(io, connection.near, sent, outcomes[1]));
    co_await group.join(io);
    EXPECT_EQ(received, sent);
  }
  co_await resume_on(runtime.control());
}

TEST_P(SocketOperationsTest, ASocketMayMoveFromWorkerToWorker) {
  runtime().run(move_between_workers(runtime()));
}

Task<void> reuse_numbers(Io& io) {
  for (int round = 0; round < 50; ++round) {
    Connection connection = co_await make_connection(io);
    std::vector<std::byte> received(1);
    Status outcomes[2];
    const std::vector<std::byte> sent = pattern(1);
    TaskGroup group;
    group.spawn(io, receive_and_keep(io, connection.far, received, outcomes[0]));
    group.spawn(io, send_and_keep(io, connection.near, sent, outcomes[1]));
    co_await group.join(io);
    EXPECT_TRUE(outcomes[0].ok()) << outcomes[0].message();
  }
}

TEST_P(SocketOperationsTest, ADescriptorNumberUsedAgainIsANewSocket) {
  runtime().run(reuse_numbers(runtime().control()));
}

Task<void> receive_from_closed(Io& io) {
  Connection connection = co_await make_connection(io);
  const std::vector<std::byte> sent = pattern(3);
  const Status sending = co_await send_all(io, connection.near, sent);
  EXPECT_TRUE(sending.ok());
  connection.near.reset();
  std::vector<std::byte> received(10);
  const Result<std::size_t> some = co_await receive_some(io, connection.far, received);
  EXPECT_TRUE(some.ok() && *some == 3);
  const Result<std::size_t> end = co_await receive_some(io, connection.far, received);
  EXPECT_TRUE(end.ok() && *end == 0);
  const Status exactly = co_await receive_exactly(io, connection.far, received);
  EXPECT_EQ(exactly.code(), ErrorCode::kConnectionLost);
}

TEST_P(SocketOperationsTest, APeerThatClosedIsTheEndOrALostConnection) {
  runtime().run(receive_from_closed(runtime().control()));
}

Task<void> send_to_reset(Io& io) {
  Connection connection = co_await make_connection(io);
  const linger reset_at_close{1, 0};
  ::setsockopt(connection.far.descriptor(), SOL_SOCKET, SO_LINGER, &reset_at_close,
               sizeof reset_at_close);
  connection.far.reset();
  const std::vector<std::byte> sent = pattern(1000);
  const Status sending = co_await send_all(io, connection.near, sent);
  EXPECT_EQ(sending.code(), ErrorCode::kConnectionLost) << sending.message();
  const Status again = co_await send_all(io, connection.near, sent);
  EXPECT_EQ(again.code(), ErrorCode::kConnectionLost) << again.message();
}

TEST_P(SocketOperationsTest, SendingToAPeerThatResetIsALostConnectionAndNoSignal) {
  runtime().run(send_to_reset(runtime().control()));
}

Task<void> connect_to_nobody(Io& io) {
  Network& network = io.environment().network();
  SocketAddress address;
  {
    const Result<Socket> listener = network.listen(address_of("127.0.0.1"));
    address = *network.local_address(*listener);
  }
  const Result<Socket> socket = network.create(address, address_of("127.0.0.1"));
  const Status connected = co_await connect(io, *socket, address);
  EXPECT_EQ(connected.code(), ErrorCode::kConnectionFailed);
  EXPECT_EQ(connected.system_errno(), ECONNREFUSED);
  EXPECT_EQ(connected.message(), "connecting to " + address.text() + ": Connection refused");
}

TEST_P(SocketOperationsTest, ARefusedConnectionNamesThePeer) {
  runtime().run(connect_to_nobody(runtime().control()));
}

TEST_P(SocketOperationsTest, InterfacesAndRoutesKnowTheLoopback) {
  Network& network = runtime().environment().network();
  const auto interfaces = network.interfaces();
  ASSERT_TRUE(interfaces.ok());
  bool found = false;
  for (const InterfaceAddress& entry : *interfaces) {
    found |= entry.interface == "lo" && entry.address.host_text() == "127.0.0.1";
  }
  EXPECT_TRUE(found);
  const auto source = network.source_address_for(address_of("127.0.0.1", 80));
  ASSERT_TRUE(source.ok()) << source.status().message();
  EXPECT_EQ(source->text(), "127.0.0.1:0");
}

TEST_P(SocketOperationsTest, AnAddressThatIsNotOursCannotBeBound) {
  Network& network = runtime().environment().network();
  // 192.0.2.0/24 is for documentation (RFC 5737): no host has it.
  const auto listener = network.listen(address_of("192.0.2.1"));
  ASSERT_FALSE(listener.ok());
  EXPECT_EQ(listener.status().system_errno(), EADDRNOTAVAIL);
  EXPECT_FALSE(network.create(address_of("127.0.0.1", 1), address_of("192.0.2.1")).ok());
}

Task<void> start_many_at_once(Io& io) {
  // More operations than the ring has entries, all before the loop runs again.
  constexpr std::size_t kConnections = 400;
  std::vector<Connection> connections;
  for (std::size_t i = 0; i < kConnections; ++i) {
    Connection connection = co_await make_connection(io);
    connections.push_back(std::move(connection));
  }
  std::vector<std::vector<std::byte>> received(kConnections, std::vector<std::byte>(8));
  std::vector<Status> outcomes(2 * kConnections);
  const std::vector<std::byte> sent = pattern(8);
  TaskGroup group;
  for (std::size_t i = 0; i < kConnections; ++i) {
    group.spawn(io, receive_and_keep(io, connections[i].far, received[i], outcomes[2 * i]));
  }
  for (std::size_t i = 0; i < kConnections; ++i) {
    group.spawn(io, send_and_keep(io, connections[i].near, sent, outcomes[2 * i + 1]));
  }
  co_await group.join(io);
  for (const Status& outcome : outcomes) EXPECT_TRUE(outcome.ok()) << outcome.message();
  for (const auto& bytes : received) EXPECT_EQ(bytes, sent);
}

TEST_P(SocketOperationsTest, MoreOperationsThanTheQueueHoldsAllComplete) {
  ASSERT_GE(raise_descriptor_limit(), 1000U);
  runtime().run(start_many_at_once(runtime().control()));
}

}  // namespace
}  // namespace fgsync::io::testing
