// The acceptor's side: one session's listener among strangers.
#include "transport/connection.h"

#include <algorithm>

#include "transport/connection_fixture.h"
#include "transport/openssl_peer.h"

namespace fgsync::transport {
namespace {

const PreSharedKey kKey = key_of(1);
const SessionId kSession = session_of(0x10);
constexpr char kIdentity[] = "fgsync/1 101112131415161718191a1b1c1d1e1f";

class SessionListenerTest : public EngineTest {};
FGSYNC_ON_BOTH_ENGINES(SessionListenerTest);

using DataConnection = SessionListener::DataConnection;
using Connections = std::vector<DataConnection>;  // by stream number

// The acceptor's half of a session: what came of its waiting.
struct Acceptor {
  std::optional<Result<TlsControl>> control;
  Connections data;
};

io::Task<void> accept_stream(io::Io& io, SessionListener& listener, std::uint16_t stream,
                             std::uint32_t generation, DataConnection& out) {
  Result<DataConnection> data = co_await listener.accept_data(io, stream);
  CO_ASSERT(data.ok());
  EXPECT_EQ(data->generation, generation);
  out = std::move(*data);
}

io::Task<void> accept_session(io::Io& io, SessionListener& listener, std::uint16_t streams,
                              Acceptor& acceptor) {
  Result<TlsControl> control = co_await listener.accept_control(far_deadline(io));
  const bool ok = control.ok();
  acceptor.control.emplace(std::move(control));
  if (!ok || streams == 0) co_return;
  listener.expect_streams(streams);
  acceptor.data.resize(streams);
  for (std::uint16_t stream = 0; stream < streams; ++stream) {
    co_await accept_stream(io, listener, stream, 0, acceptor.data[stream]);
  }
}

io::Task<void> join_stream(io::Io& io, io::SocketAddress address, const SessionSecret& secret,
                           std::uint16_t stream, io::Socket& out, std::uint32_t generation = 0) {
  ConnectAttempt attempt;
  Result<io::Socket> socket = co_await connect_data(io, address, std::nullopt, secret, kSession,
                                                    stream, generation, far_deadline(io), attempt);
  EXPECT_TRUE(socket.ok()) << socket.status().message();
  if (socket.ok()) out = std::move(*socket);
}

// Each accepted connection is the one that its stream number says.
io::Task<void> expect_connected(io::Io& io, const io::Socket& ours, const DataConnection& theirs,
                                std::uint16_t stream) {
  const Bytes words = bytes_of("stream " + std::to_string(stream));
  Status sent = co_await io::send_all(io, ours, words);
  CO_ASSERT(sent.ok());
  Bytes heard(words.size());
  Status received = co_await io::receive_exactly(io, theirs.socket, heard);
  CO_ASSERT(received.ok());
  EXPECT_EQ(heard, words);
}

io::Task<void> whole_session(io::Io& io, std::uint16_t streams) {
  Listening listening = listen_on_loopback(io);
  SessionListener listener(io, std::move(listening.socket), kKey, kSession);
  Acceptor acceptor;
  io::TaskGroup group;
  group.spawn(io, accept_session(io, listener, streams, acceptor));
  Result<TlsControl> control = co_await connect_control(io, listening.address, std::nullopt, kKey,
                                                        kSession, far_deadline(io));
  CO_ASSERT(control.ok());
  std::vector<io::Socket> sockets(streams);
  for (std::uint16_t stream = 0; stream < streams; ++stream) {
    group.spawn(io, join_stream(io, listening.address, control->secret, stream, sockets[stream]));
  }
  co_await group.join(io);
  CO_ASSERT(acceptor.control->ok());
  for (std::uint16_t stream = 0; stream < streams; ++stream) {
    co_await expect_connected(io, sockets[stream], acceptor.data[stream], stream);
  }
  Status sent = co_await control->stream->send(bytes_of("hello"));
  EXPECT_TRUE(sent.ok());
  Result<Bytes> heard = co_await (*acceptor.control)->stream->receive();
  CO_ASSERT(heard.ok());
  EXPECT_EQ(*heard, bytes_of("hello"));
  co_await listener.stop();
}

TEST_P(SessionListenerTest, SessionOfOneStreamConnects) { run(whole_session(control(), 1)); }

TEST_P(SessionListenerTest, AsManyStreamsAsThereMayBeConnectAtOnce) {
  run(whole_session(control(), limits::kStreamsMax));
}

// Strangers before the control connection, kept open throughout.
io::Task<void> disturb_before(io::Io& io, io::SocketAddress address,
                              std::vector<io::Socket>& strangers) {
  const Bytes sayings[] = {
      Bytes(),                                                 // silent
      pattern(kPreambleBytes, 9),                              // junk
      bytes_of("GET / HTTP/1.1\r\nHost: example\r\n\r\n"),     // shorter than a preamble
      to_bytes(control_preamble(session_of(0x77))),            // of another session
      to_bytes(control_preamble(kSession)),                    // no TLS after it
      to_bytes(data_preamble(kSession, 0, 0, secret_of(50))),  // no secret yet to check it with
  };
  for (const Bytes& saying : sayings) {
    co_await connect_and_say(io, address, saying, strangers.emplace_back());
  }
}

// Strangers who must be turned away at once, with the session's own streams beside them.
io::Task<void> disturb_later(io::Io& io, io::SocketAddress address, const SessionSecret& secret,
                             std::vector<io::Socket>& strangers) {
  PreambleBytes reflected = data_preamble(kSession, 1, 0, secret);
  const Mac mac = secret.join_mac(covered_by_mac(reflected), Direction::kToInitiator);
  std::copy(mac.begin(), mac.end(), reflected.begin() + kPreambleMacOffset);
  PreambleBytes renumbered = data_preamble(kSession, 0, 0, secret);
  renumbered[10] = std::byte{1};
  const PreambleBytes sayings[] = {
      data_preamble(kSession, 0, 0, secret),                        // replayed
      data_preamble(kSession, 1, 0, secret_of(50)),                 // another secret's MAC
      data_preamble(session_of(0x77), 1, 0, secret),                // of another session
      data_preamble(kSession, limits::kStreamsMax, 0, secret),      // proven, over any bound
      data_preamble(kSession, limits::kStreamsMax - 1, 0, secret),  // proven, not agreed on
      reflected,
      renumbered,
      control_preamble(kSession),  // there is a control connection already
  };
  for (const PreambleBytes& saying : sayings) {
    co_await connect_and_say(io, address, to_bytes(saying), strangers.emplace_back());
  }
}

io::Task<void> session_among_strangers(io::Io& io) {
  Listening listening = listen_on_loopback(io);
  SessionListener listener(io, std::move(listening.socket), kKey, kSession);
  Acceptor acceptor;
  io::TaskGroup group;
  const io::TimePoint begun = io.environment().now();
  group.spawn(io, accept_session(io, listener, 3, acceptor));
  std::vector<io::Socket> before;
  co_await disturb_before(io, listening.address, before);
  Result<TlsControl> wrong_key = co_await connect_control(io, listening.address, std::nullopt,
                                                          key_of(2), kSession, far_deadline(io));
  EXPECT_EQ(wrong_key.status().code(), ErrorCode::kUnauthenticated);
  Result<TlsControl> control = co_await connect_control(io, listening.address, std::nullopt, kKey,
                                                        kSession, far_deadline(io));
  CO_ASSERT(control.ok());
  io::Socket sockets[3];
  co_await join_stream(io, listening.address, control->secret, 0, sockets[0]);
  std::vector<io::Socket> later;
  co_await disturb_later(io, listening.address, control->secret, later);
  co_await join_stream(io, listening.address, control->secret, 2, sockets[2]);
  co_await join_stream(io, listening.address, control->secret, 1, sockets[1]);
  co_await group.join(io);
  EXPECT_LT(io.environment().now() - begun, kHandshakeDeadline);
  CO_ASSERT(acceptor.control->ok());
  for (std::uint16_t stream = 0; stream < 3; ++stream) {
    co_await expect_connected(io, sockets[stream], acceptor.data[stream], stream);
  }
  for (const io::Socket& stranger : later) co_await expect_closed(io, stranger);
  co_await listener.stop();
  for (const io::Socket& stranger : before) co_await expect_closed(io, stranger);
}

TEST_P(SessionListenerTest, StrangersDoNotDisturbTheSession) {
  run(session_among_strangers(control()));
}

// A peer that has finished TLS on its side joins a stream before it sends the message that finishes
// it on ours.
io::Task<void> join_early(io::Io& io) {
  Listening listening = listen_on_loopback(io);
  SessionListener listener(io, std::move(listening.socket), kKey, kSession);
  Acceptor acceptor;
  io::TaskGroup group;
  group.spawn(io, accept_session(io, listener, 1, acceptor));
  io::Socket control;
  co_await connect_and_say(io, listening.address, to_bytes(control_preamble(kSession)), control);
  OpensslPeerOptions options;
  options.key = kKey;
  options.identity = kIdentity;
  OpensslPeer peer(options);
  std::vector<std::byte> room(65536);
  while (!peer.step()) {
    CO_ASSERT(!peer.failed());
    const Bytes outgoing = peer.take();
    Status sent = co_await io::send_all(io, control, outgoing);
    CO_ASSERT(sent.ok());
    Result<std::size_t> received = co_await io::receive_some(io, control, room);
    CO_ASSERT(received.ok() && *received > 0);
    peer.give(std::span(room).first(*received));
  }
  const Bytes finished = peer.take();  // held back
  io::Socket stream;
  const SessionSecret secret = peer.exported_secret();
  group.spawn(io, join_stream(io, listening.address, secret, 0, stream));
  io::Socket silent;  // accepted after the stream, so that the stream's preamble is surely there
  co_await connect_and_say(io, listening.address, Bytes(), silent);
  for (int turn = 0; turn < 100; ++turn) co_await io::resume_on(io);
  EXPECT_FALSE(acceptor.control);
  Status sent = co_await io::send_all(io, control, finished);
  CO_ASSERT(sent.ok());
  co_await group.join(io);
  CO_ASSERT(acceptor.control->ok());
  co_await expect_connected(io, stream, acceptor.data[0], 0);
  co_await listener.stop();
}

TEST_P(SessionListenerTest, StreamThatComesBeforeTheHandshakeIsOverWaitsForIt) {
  run(join_early(control()));
}

io::Task<void> hit_deadlines(io::Io& io) {
  Listening listening = listen_on_loopback(io);
  SessionListener listener(io, std::move(listening.socket), kKey, kSession);
  const io::TimePoint deadline = io.environment().now() + std::chrono::milliseconds(50);
  Result<TlsControl> control = co_await listener.accept_control(deadline);
  EXPECT_EQ(control.status().code(), ErrorCode::kConnectTimeout);
  EXPECT_GE(io.environment().now(), deadline);
  co_await listener.stop();
}

TEST_P(SessionListenerTest, NoControlConnectionHitsTheDeadline) { run(hit_deadlines(control())); }

io::Task<void> wait_for_data(io::Io& io, SessionListener& listener, std::uint16_t stream,
                             ErrorCode& code) {
  Result<DataConnection> data = co_await listener.accept_data(io, stream);
  code = data.status().code();
}

io::Task<void> miss_a_stream(io::Io& io) {
  Listening listening = listen_on_loopback(io);
  SessionListener listener(io, std::move(listening.socket), kKey, kSession);
  Acceptor acceptor;
  io::TaskGroup group;
  group.spawn(io, accept_session(io, listener, 0, acceptor));
  Result<TlsControl> control = co_await connect_control(io, listening.address, std::nullopt, kKey,
                                                        kSession, far_deadline(io));
  co_await group.join(io);
  CO_ASSERT(control.ok() && acceptor.control->ok());
  io::Socket socket;
  co_await join_stream(io, listening.address, control->secret, 0, socket);
  DataConnection first;
  co_await accept_stream(io, listener, 0, 0, first);
  ErrorCode code = ErrorCode::kOk;
  group.spawn(io, wait_for_data(io, listener, 1, code));
  listener.end_waiting();
  co_await group.join(io);
  EXPECT_EQ(code, ErrorCode::kConnectTimeout);
  co_await wait_for_data(io, listener, 0, code);
  EXPECT_EQ(code, ErrorCode::kConnectTimeout);
  co_await listener.stop();
  co_await wait_for_data(io, listener, 0, code);
  EXPECT_EQ(code, ErrorCode::kCancelled);
}

TEST_P(SessionListenerTest, WaitingForAStreamCanBeEnded) { run(miss_a_stream(control())); }

// A session whose one stream is connected again and again.
io::Task<void> replace_a_stream(io::Io& io) {
  Listening listening = listen_on_loopback(io);
  SessionListener listener(io, std::move(listening.socket), kKey, kSession);
  Acceptor acceptor;
  io::TaskGroup group;
  group.spawn(io, accept_session(io, listener, 1, acceptor));
  Result<TlsControl> control = co_await connect_control(io, listening.address, std::nullopt, kKey,
                                                        kSession, far_deadline(io));
  CO_ASSERT(control.ok());
  const SessionSecret& secret = control->secret;
  io::Socket first;
  co_await join_stream(io, listening.address, secret, 0, first);
  co_await group.join(io);
  CO_ASSERT(acceptor.data.size() == 1);

  // The next one is taken while the first still stands, and numbers may be left out.
  io::Socket second;
  io::Socket third;
  co_await join_stream(io, listening.address, secret, 0, second, 3);
  DataConnection taken;
  co_await accept_stream(io, listener, 0, 3, taken);
  co_await expect_connected(io, second, taken, 0);
  co_await expect_connected(io, first, acceptor.data[0], 0);

  // The same and older ones, as somebody might have recorded them, are not answered.
  for (const std::uint32_t generation : {0u, 2u, 3u}) {
    io::Socket replayed;
    co_await connect_and_say(io, listening.address,
                             to_bytes(data_preamble(kSession, 0, generation, secret)), replayed);
    co_await expect_closed(io, replayed);
  }
  // Another number under an old one's MAC neither.
  PreambleBytes renumbered = data_preamble(kSession, 0, 3, secret);
  renumbered[12] = std::byte{9};
  io::Socket forged;
  co_await connect_and_say(io, listening.address, to_bytes(renumbered), forged);
  co_await expect_closed(io, forged);

  // Of those that nobody has taken yet only the newest is kept.
  co_await join_stream(io, listening.address, secret, 0, second, 4);
  co_await join_stream(io, listening.address, secret, 0, third, 5);
  co_await accept_stream(io, listener, 0, 5, taken);
  co_await expect_connected(io, third, taken, 0);
  co_await expect_closed(io, second);
  co_await listener.stop();
}

TEST_P(SessionListenerTest, AStreamIsReplacedByConnectionsOfHigherGenerationsOnly) {
  run(replace_a_stream(control()));
}

io::Task<void> wait_for_control(io::Io& io, SessionListener& listener, io::Event& begun,
                                ErrorCode& code) {
  begun.set();
  Result<TlsControl> control = co_await listener.accept_control(far_deadline(io));
  code = control.status().code();
}

io::Task<void> stop_while_waiting(io::Io& io) {
  Listening listening = listen_on_loopback(io);
  SessionListener listener(io, std::move(listening.socket), kKey, kSession);
  io::TaskGroup group;
  io::Event begun;
  ErrorCode code = ErrorCode::kOk;
  group.spawn(io, wait_for_control(io, listener, begun, code));
  co_await begun.wait(io);
  std::vector<io::Socket> strangers;
  co_await disturb_before(io, listening.address, strangers);
  const io::TimePoint stopped = io.environment().now();
  co_await listener.stop();
  co_await group.join(io);
  EXPECT_LT(io.environment().now() - stopped, kHandshakeDeadline / 2);
  EXPECT_EQ(code, ErrorCode::kCancelled);
  for (const io::Socket& stranger : strangers) co_await expect_closed(io, stranger);
}

TEST_P(SessionListenerTest, StopEndsTheWaitAndEveryUnprovenConnection) {
  run(stop_while_waiting(control()));
}

io::Task<void> wait_after_stop(io::Io& io) {
  Listening listening = listen_on_loopback(io);
  SessionListener listener(io, std::move(listening.socket), kKey, kSession);
  co_await listener.stop();
  co_await listener.stop();
  Result<TlsControl> control = co_await listener.accept_control(far_deadline(io));
  EXPECT_EQ(control.status().code(), ErrorCode::kCancelled);
}

TEST_P(SessionListenerTest, WaitingAfterStopIsCancelled) { run(wait_after_stop(control())); }

io::Task<void> crowd(io::Io& io) {
  Listening listening = listen_on_loopback(io);
  SessionListener listener(io, std::move(listening.socket), kKey, kSession);
  Acceptor acceptor;
  io::TaskGroup group;
  group.spawn(io, accept_session(io, listener, 0, acceptor));
  const io::TimePoint begun = io.environment().now();
  std::vector<io::Socket> silent(kUnprovenMax);
  for (io::Socket& socket : silent) {
    co_await connect_and_say(io, listening.address, Bytes(), socket);
  }
  io::Socket one_more;
  co_await connect_and_say(io, listening.address, Bytes(), one_more);
  co_await expect_closed(io, one_more);
  EXPECT_LT(io.environment().now() - begun, kHandshakeDeadline / 2);
  silent.clear();  // makes room again
  for (;;) {
    Result<TlsControl> control = co_await connect_control(io, listening.address, std::nullopt, kKey,
                                                          kSession, far_deadline(io));
    if (control.ok()) break;
    CO_ASSERT(io.environment().now() - begun < kHandshakeDeadline);
  }
  co_await group.join(io);
  EXPECT_TRUE(acceptor.control->ok());
  co_await listener.stop();
}

TEST_P(SessionListenerTest, MoreUnprovenConnectionsThanAllowedAreClosedAtOnce) {
  run(crowd(control()));
}

}  // namespace
}  // namespace fgsync::transport
