#include "transport/tls_control_stream.h"

#include <optional>

#include "base/limits.h"
#include "io/sync.h"
#include "transport/engine_fixture.h"
#include "transport/openssl_peer.h"

namespace fgsync::transport {
namespace {

PreSharedKey key_of(unsigned first) {
  PreSharedKey key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = std::byte(first + i);
  return key;
}

SessionId session_of(unsigned first) {
  SessionId id;
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = std::byte(first + i);
  return id;
}

const PreSharedKey kKey = key_of(1);
const PreSharedKey kOtherKey = key_of(2);
const SessionId kSession = session_of(0xa0);
const SessionId kOtherSession = session_of(0xb0);
// The name of kSession's key.
constexpr char kIdentity[] = "fgsync/1 a0a1a2a3a4a5a6a7a8a9aaabacadaeaf";

using Outcome = std::optional<Result<TlsControl>>;

io::Task<void> establish(io::Io& io, io::Socket socket, TlsRole role, PreSharedKey key,
                         SessionId session, std::uint64_t records_per_key, Outcome& outcome) {
  Result<TlsControl> control = co_await establish_tls_control(
      io, std::move(socket), role, key, session, far_deadline(io), records_per_key);
  outcome.emplace(std::move(control));
}

struct Ends {
  Outcome initiator;
  Outcome acceptor;
};

io::Task<void> establish_both(io::Io& io, Ends& ends, const PreSharedKey& acceptor_key,
                              const SessionId& acceptor_session,
                              std::uint64_t records_per_key = kTlsRecordsPerKey) {
  SocketPair pair;
  co_await connect_pair(io, pair);
  io::TaskGroup group;
  group.spawn(io, establish(io, std::move(pair.first), TlsRole::kInitiator, kKey, kSession,
                            records_per_key, ends.initiator));
  group.spawn(io, establish(io, std::move(pair.second), TlsRole::kAcceptor, acceptor_key,
                            acceptor_session, records_per_key, ends.acceptor));
  co_await group.join(io);
}

bool same_secret(const SessionSecret& a, const SessionSecret& b) {
  return a.frame_key(0, Direction::kFromInitiator, 0, 0).key ==
         b.frame_key(0, Direction::kFromInitiator, 0, 0).key;
}

class TlsControlStreamTest : public EngineTest {};
FGSYNC_ON_BOTH_ENGINES(TlsControlStreamTest);

io::Task<void> agree(io::Io& io) {
  Ends ends;
  Ends others;
  co_await establish_both(io, ends, kKey, kSession);
  co_await establish_both(io, others, kKey, kSession);
  CO_ASSERT(ends.initiator->ok() && ends.acceptor->ok());
  CO_ASSERT(others.initiator->ok());
  const SessionSecret& secret = (*ends.initiator)->secret;
  EXPECT_TRUE(same_secret(secret, (*ends.acceptor)->secret));
  // Forward secrecy: the same key gives another secret the next time.
  EXPECT_FALSE(same_secret(secret, (*others.initiator)->secret));
}

TEST_P(TlsControlStreamTest, BothSidesWithTheKeyAgreeOnAFreshSecret) { run(agree(control())); }

io::Task<void> fail_to_agree(io::Io& io, PreSharedKey acceptor_key, SessionId acceptor_session) {
  Ends ends;
  co_await establish_both(io, ends, acceptor_key, acceptor_session);
  EXPECT_EQ(ends.initiator->status().code(), ErrorCode::kUnauthenticated);
  EXPECT_EQ(ends.acceptor->status().code(), ErrorCode::kUnauthenticated);
  EXPECT_NE(ends.initiator->status().message().find("TLS handshake: "), std::string::npos);
}

TEST_P(TlsControlStreamTest, AnotherKeyIsUnauthenticatedOnBothSides) {
  run(fail_to_agree(control(), kOtherKey, kSession));
}

TEST_P(TlsControlStreamTest, AnotherSessionIsUnauthenticatedOnBothSides) {
  run(fail_to_agree(control(), kKey, kOtherSession));
}

// Our side against a peer made with OpenSSL, on one connection.
struct Meeting {
  Outcome ours;
  bool theirs = false;
};

io::Task<void> run_peer(io::Io& io, const io::Socket& socket, OpensslPeer& peer, bool& finished) {
  finished = co_await run_handshake(io, socket, peer);
  if (!finished) socket.shutdown();
}

io::Task<void> meet(io::Io& io, OpensslPeer& peer, TlsRole our_role, SocketPair& pair,
                    Meeting& meeting) {
  co_await connect_pair(io, pair);
  io::TaskGroup group;
  group.spawn(io, establish(io, std::move(pair.first), our_role, kKey, kSession, kTlsRecordsPerKey,
                            meeting.ours));
  group.spawn(io, run_peer(io, pair.second, peer, meeting.theirs));
  co_await group.join(io);
}

io::Task<void> meet_and_refuse(io::Io& io, OpensslPeerOptions options) {
  OpensslPeer peer(options);
  SocketPair pair;
  Meeting meeting;
  const TlsRole our_role = options.server ? TlsRole::kInitiator : TlsRole::kAcceptor;
  co_await meet(io, peer, our_role, pair, meeting);
  EXPECT_EQ(meeting.ours->status().code(), ErrorCode::kUnauthenticated)
      << meeting.ours->status().message();
}

TEST_P(TlsControlStreamTest, PeersWithoutTheKeyAreRefused) {
  OpensslPeerOptions options;
  run(meet_and_refuse(control(), options));
}

TEST_P(TlsControlStreamTest, ServerWithACertificateInsteadOfTheKeyIsRefused) {
  OpensslPeerOptions options;
  options.server = true;
  options.certificate = true;
  run(meet_and_refuse(control(), options));
}

TEST_P(TlsControlStreamTest, ClientOfTls12IsRefused) {
  OpensslPeerOptions options;
  options.version_max = TLS1_2_VERSION;
  run(meet_and_refuse(control(), options));
}

TEST_P(TlsControlStreamTest, ServerOfTls12IsRefused) {
  OpensslPeerOptions options;
  options.server = true;
  options.certificate = true;
  options.version_max = TLS1_2_VERSION;
  run(meet_and_refuse(control(), options));
}

OpensslPeerOptions client_with_key() {
  OpensslPeerOptions options;
  options.key = kKey;
  options.identity = kIdentity;
  return options;
}

io::Task<void> meet_and_agree(io::Io& io, OpensslPeerOptions options) {
  OpensslPeer peer(options);
  SocketPair pair;
  Meeting meeting;
  const TlsRole our_role = options.server ? TlsRole::kInitiator : TlsRole::kAcceptor;
  co_await meet(io, peer, our_role, pair, meeting);
  CO_ASSERT(meeting.ours->ok() && meeting.theirs);
  EXPECT_TRUE(same_secret((*meeting.ours)->secret, peer.exported_secret()));
}

TEST_P(TlsControlStreamTest, SecretIsTheExportOfTheTlsSession) {
  run(meet_and_agree(control(), client_with_key()));
}

TEST_P(TlsControlStreamTest, ServerWithTheKeyIsAccepted) {
  OpensslPeerOptions options = client_with_key();
  options.server = true;
  run(meet_and_agree(control(), options));
}

io::Task<void> announce(io::Io& io, std::uint32_t length) {
  OpensslPeer peer(client_with_key());
  SocketPair pair;
  Meeting meeting;
  co_await meet(io, peer, TlsRole::kAcceptor, pair, meeting);
  CO_ASSERT(meeting.ours->ok());
  const std::byte prefix[] = {std::byte(length), std::byte(length >> 8), std::byte(length >> 16),
                              std::byte(length >> 24)};
  peer.write(prefix);
  const Bytes sealed = peer.take();
  Status sent = co_await io::send_all(io, pair.second, sealed);
  CO_ASSERT(sent.ok());
  ControlStream& stream = *(*meeting.ours)->stream;
  Result<Bytes> message = co_await stream.receive();
  EXPECT_EQ(message.status().code(), ErrorCode::kProtocolError);
  Status later = co_await stream.send(bytes_of("later"));
  EXPECT_EQ(later.code(), ErrorCode::kProtocolError);
}

TEST_P(TlsControlStreamTest, MessageOverTheBoundIsRefusedByItsLength) {
  run(announce(control(), limits::kControlMessageBytesMax + 1));
}

TEST_P(TlsControlStreamTest, HugeLengthIsRefused) { run(announce(control(), 0xffffffffu)); }

io::Task<void> receive_garbage(io::Io& io) {
  SocketPair pair;
  co_await connect_pair(io, pair);
  const Bytes garbage = pattern(500, 3);
  Status sent = co_await io::send_all(io, pair.second, garbage);
  CO_ASSERT(sent.ok());
  Outcome outcome;
  co_await establish(io, std::move(pair.first), TlsRole::kAcceptor, kKey, kSession,
                     kTlsRecordsPerKey, outcome);
  EXPECT_EQ(outcome->status().code(), ErrorCode::kUnauthenticated);
}

TEST_P(TlsControlStreamTest, GarbageIsUnauthenticated) { run(receive_garbage(control())); }

io::Task<void> receive_end(io::Io& io) {
  SocketPair pair;
  co_await connect_pair(io, pair);
  pair.second.reset();
  Outcome outcome;
  co_await establish(io, std::move(pair.first), TlsRole::kInitiator, kKey, kSession,
                     kTlsRecordsPerKey, outcome);
  EXPECT_EQ(outcome->status().code(), ErrorCode::kConnectionLost);
}

TEST_P(TlsControlStreamTest, PeerThatGoesAwayIsAConnectionLost) { run(receive_end(control())); }

io::Task<void> wait_in_vain(io::Io& io, TlsRole role) {
  SocketPair pair;
  co_await connect_pair(io, pair);
  const io::TimePoint begun = io.environment().now();
  const io::TimePoint deadline = begun + std::chrono::milliseconds(50);
  Result<TlsControl> control =
      co_await establish_tls_control(io, std::move(pair.first), role, kKey, kSession, deadline);
  EXPECT_EQ(control.status().code(), ErrorCode::kTimeout);
  EXPECT_GE(io.environment().now(), deadline);
}

TEST_P(TlsControlStreamTest, SilentPeerHitsTheDeadline) {
  run(wait_in_vain(control(), TlsRole::kAcceptor));
}

TEST_P(TlsControlStreamTest, SilentServerHitsTheDeadline) {
  run(wait_in_vain(control(), TlsRole::kInitiator));
}

constexpr std::size_t kSizes[] = {0,     1,     100,     16383,
                                  16384, 16385, 300'000, limits::kControlMessageBytesMax};

io::Task<void> send_sizes(ControlStream& stream, unsigned rounds, std::uint32_t seed) {
  for (unsigned round = 0; round < rounds; ++round) {
    for (const std::size_t size : kSizes) {
      Status sent = co_await stream.send(pattern(size, seed + round));
      EXPECT_TRUE(sent.ok()) << sent.message();
    }
  }
}

io::Task<void> receive_sizes(ControlStream& stream, unsigned rounds, std::uint32_t seed) {
  for (unsigned round = 0; round < rounds; ++round) {
    for (const std::size_t size : kSizes) {
      Result<Bytes> message = co_await stream.receive();
      CO_ASSERT(message.ok());
      EXPECT_EQ(*message, pattern(size, seed + round));
    }
  }
}

io::Task<void> exchange_both_ways(io::Io& io, std::uint64_t records_per_key) {
  Ends ends;
  co_await establish_both(io, ends, kKey, kSession, records_per_key);
  CO_ASSERT(ends.initiator->ok() && ends.acceptor->ok());
  ControlStream& left = *(*ends.initiator)->stream;
  ControlStream& right = *(*ends.acceptor)->stream;
  Status over = co_await left.send(Bytes(limits::kControlMessageBytesMax + 1));
  EXPECT_EQ(over.code(), ErrorCode::kInvalidArgument);
  io::TaskGroup group;
  group.spawn(io, send_sizes(left, 3, 10));
  group.spawn(io, receive_sizes(right, 3, 10));
  group.spawn(io, send_sizes(right, 3, 20));
  group.spawn(io, receive_sizes(left, 3, 20));
  co_await group.join(io);
}

TEST_P(TlsControlStreamTest, MessagesUpToTheBoundCrossInBothDirectionsAtOnce) {
  run(exchange_both_ways(control(), kTlsRecordsPerKey));
}

TEST_P(TlsControlStreamTest, KeysAreUpdatedUnderwayInBothDirections) {
  run(exchange_both_ways(control(), 3));
}

io::Task<void> receive_one(ControlStream& stream, io::Event& begun, ErrorCode& code) {
  begun.set();
  Result<Bytes> message = co_await stream.receive();
  code = message.status().code();
}

io::Task<void> shut_down_while_receiving(io::Io& io) {
  Ends ends;
  co_await establish_both(io, ends, kKey, kSession);
  CO_ASSERT(ends.initiator->ok() && ends.acceptor->ok());
  io::Event begun;
  ErrorCode ours = ErrorCode::kOk;
  ErrorCode theirs = ErrorCode::kOk;
  io::TaskGroup group;
  group.spawn(io, receive_one(*(*ends.initiator)->stream, begun, ours));
  group.spawn(io, receive_one(*(*ends.acceptor)->stream, begun, theirs));
  co_await begun.wait(io);
  (*ends.initiator)->stream->shutdown();
  co_await group.join(io);
  EXPECT_EQ(ours, ErrorCode::kConnectionLost);
  EXPECT_EQ(theirs, ErrorCode::kConnectionLost);
  Status later = co_await (*ends.initiator)->stream->send(bytes_of("later"));
  EXPECT_EQ(later.code(), ErrorCode::kConnectionLost);
}

TEST_P(TlsControlStreamTest, ShutdownEndsCallsInFlightOnBothSides) {
  run(shut_down_while_receiving(control()));
}

}  // namespace
}  // namespace fgsync::transport
