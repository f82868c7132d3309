// The initiator's side, against acceptors made by the test.
#include "transport/connection.h"

#include <sys/socket.h>

#include "transport/connection_fixture.h"

namespace fgsync::transport {
namespace {

const SessionId kSession = session_of(0x10);

class ConnectionTest : public EngineTest {};
FGSYNC_ON_BOTH_ENGINES(ConnectionTest);

io::TimePoint soon(io::Io& io) { return io.environment().now() + std::chrono::milliseconds(50); }

io::Task<void> connect_to_nobody(io::Io& io) {
  Listening listening = listen_on_loopback(io);
  listening.socket.reset();
  Result<TlsControl> control = co_await connect_control(io, listening.address, std::nullopt,
                                                        key_of(1), kSession, far_deadline(io));
  EXPECT_EQ(control.status().code(), ErrorCode::kConnectionFailed);
  EXPECT_NE(control.status().message().find(listening.address.text()), std::string::npos);
  const SessionSecret secret = secret_of(1);
  ConnectAttempt attempt;
  Result<io::Socket> data = co_await connect_data(io, listening.address, std::nullopt, secret,
                                                  kSession, 0, 0, far_deadline(io), attempt);
  EXPECT_EQ(data.status().code(), ErrorCode::kConnectionFailed);
}

TEST_P(ConnectionTest, NobodyListeningIsAConnectionFailed) { run(connect_to_nobody(control())); }

io::Task<void> connect_to_silence(io::Io& io) {
  const Listening listening = listen_on_loopback(io);
  Result<TlsControl> control =
      co_await connect_control(io, listening.address, std::nullopt, key_of(1), kSession, soon(io));
  EXPECT_EQ(control.status().code(), ErrorCode::kConnectTimeout);
  const SessionSecret secret = secret_of(1);
  ConnectAttempt attempt;
  Result<io::Socket> data = co_await connect_data(io, listening.address, std::nullopt, secret,
                                                  kSession, 0, 0, soon(io), attempt);
  EXPECT_EQ(data.status().code(), ErrorCode::kConnectTimeout);
}

TEST_P(ConnectionTest, SilentAcceptorHitsTheDeadline) { run(connect_to_silence(control())); }

// A listener whose queue is full drops what comes: a connect then waits for an answer that does not
// come.
io::Task<void> connect_to_a_full_queue(io::Io& io) {
  const Listening listening = listen_on_loopback(io);
  EXPECT_EQ(::listen(listening.socket.descriptor(), 0), 0);  // one more fits than this says
  io::Socket queued;
  co_await connect_and_say(io, listening.address, Bytes(), queued);
  const io::TimePoint begun = io.environment().now();
  Result<TlsControl> control =
      co_await connect_control(io, listening.address, std::nullopt, key_of(1), kSession, soon(io));
  EXPECT_EQ(control.status().code(), ErrorCode::kConnectTimeout) << control.status().message();
  const SessionSecret secret = secret_of(1);
  ConnectAttempt attempt;
  Result<io::Socket> data = co_await connect_data(io, listening.address, std::nullopt, secret,
                                                  kSession, 0, 0, soon(io), attempt);
  EXPECT_EQ(data.status().code(), ErrorCode::kConnectTimeout) << data.status().message();
  EXPECT_LT(io.environment().now() - begun, std::chrono::seconds(5));
}

TEST_P(ConnectionTest, ConnectThatGetsNoAnswerHitsTheDeadline) {
  run(connect_to_a_full_queue(control()));
}

io::Task<void> connect_until_given_up(io::Io& io, io::SocketAddress address,
                                      ConnectAttempt& attempt, ErrorCode& code) {
  const SessionSecret secret = secret_of(1);
  Result<io::Socket> data = co_await connect_data(io, address, std::nullopt, secret, kSession, 0, 1,
                                                  far_deadline(io), attempt);
  code = data.status().code();
}

io::Task<void> give_up(io::Io& io) {
  const Listening listening = listen_on_loopback(io);
  ConnectAttempt attempt;
  ErrorCode code = ErrorCode::kOk;
  io::TaskGroup group;
  group.spawn(io, connect_until_given_up(io, listening.address, attempt, code));
  Result<io::Socket> accepted = co_await io::accept(io, listening.socket);
  CO_ASSERT(accepted.ok());
  attempt.give_up();
  co_await group.join(io);
  EXPECT_EQ(code, ErrorCode::kCancelled);
  // Later ones do not even begin.
  group.spawn(io, connect_until_given_up(io, listening.address, attempt, code));
  co_await group.join(io);
  EXPECT_EQ(code, ErrorCode::kCancelled);
}

TEST_P(ConnectionTest, AnAttemptThatIsGivenUpEndsAtOnce) { run(give_up(control())); }

struct Answer {
  Bytes preamble;
  Bytes bytes;
};

// Accepts one connection, keeps its preamble, answers and closes.
io::Task<void> answer_once(io::Io& io, const io::Socket& listener, Answer& answer) {
  Result<io::Socket> socket = co_await io::accept(io, listener);
  CO_ASSERT(socket.ok());
  answer.preamble.resize(kPreambleBytes);
  Status received = co_await io::receive_exactly(io, *socket, answer.preamble);
  CO_ASSERT(received.ok());
  Status sent = co_await io::send_all(io, *socket, answer.bytes);
  EXPECT_TRUE(sent.ok());
}

io::Task<void> connect_data_once(io::Io& io, Bytes bytes, ErrorCode expected) {
  const Listening listening = listen_on_loopback(io);
  const SessionSecret secret = secret_of(1);
  Answer answer;
  answer.bytes = std::move(bytes);
  io::TaskGroup group;
  group.spawn(io, answer_once(io, listening.socket, answer));
  ConnectAttempt attempt;
  Result<io::Socket> data = co_await connect_data(io, listening.address, loopback_address(), secret,
                                                  kSession, 9, 4, far_deadline(io), attempt);
  co_await group.join(io);
  EXPECT_EQ(data.status().code(), expected) << data.status().message();
  EXPECT_EQ(answer.preamble, to_bytes(data_preamble(kSession, 9, 4, secret)));
}

Bytes acceptors_mac(const SessionSecret& secret, Direction from) {
  const PreambleBytes preamble = data_preamble(kSession, 9, 4, secret);
  const Mac mac = secret.join_mac(covered_by_mac(preamble), from);
  return Bytes(mac.begin(), mac.end());
}

TEST_P(ConnectionTest, DataConnectionIsProvenInBothDirections) {
  run(connect_data_once(control(), acceptors_mac(secret_of(1), Direction::kToInitiator),
                        ErrorCode::kOk));
}

TEST_P(ConnectionTest, AcceptorWithoutTheSecretIsUnauthenticated) {
  run(connect_data_once(control(), acceptors_mac(secret_of(2), Direction::kToInitiator),
                        ErrorCode::kUnauthenticated));
}

TEST_P(ConnectionTest, OwnMacReflectedIsUnauthenticated) {
  run(connect_data_once(control(), acceptors_mac(secret_of(1), Direction::kFromInitiator),
                        ErrorCode::kUnauthenticated));
}

TEST_P(ConnectionTest, AcceptorThatHangsUpIsAConnectionFailed) {
  run(connect_data_once(control(), Bytes(31), ErrorCode::kConnectionFailed));
}

}  // namespace
}  // namespace fgsync::transport
