// The acceptor's side: one session's listener among strangers.
#include <algorithm>

#include "transport/connection.h"
#include "transport/connection_fixture.h"
#include "transport/openssl_peer.h"

namespace fgsync::transport {
namespace {

const PreSharedKey kKey = key_of(1);
const SessionId kSession = session_of(0x10);
constexpr char kIdentity[] = "fgsync/1 101112131415161718191a1b1c1d1e1f";

class SessionListenerTest : public EngineTest {};
FGSYNC_ON_BOTH_ENGINES(SessionListenerTest);

using Connections = std::vector<SessionListener::DataConnection>;

// The acceptor's half of a session: what came of its waiting.
struct Acceptor {
  std::optional<Result<TlsControl>> control;
  std::optional<Result<Connections>> data;
};

io::Task<void> accept_session(io::Io& io, SessionListener& listener, std::uint16_t streams,
                              Acceptor& acceptor) {
  Result<TlsControl> control = co_await listener.accept_control(far_deadline(io));
  const bool ok = control.ok();
  acceptor.control.emplace(std::move(control));
  if (!ok || streams == 0) co_return;
  Result<Connections> data = co_await listener.accept_data(streams, far_deadline(io));
  acceptor.data.emplace(std::move(data));
}

io::Task<void> join_stream(io::Io& io, io::SocketAddress address, const SessionSecret& secret,
                           std::uint16_t stream, io::Socket& out) {
  Result<io::Socket> socket =
      co_await connect_data(io, address, std::nullopt, secret, kSession, stream, far_deadline(io));
  EXPECT_TRUE(socket.ok()) << socket.status().message();
  if (socket.ok()) out = std::move(*socket);
}

// Each accepted connection is the one that its stream number says.
io::Task<void> expect_connected(io::Io& io, const io::Socket& ours, const Connections& theirs,
                                std::uint16_t stream) {
  const auto match = std::find_if(theirs.begin(), theirs.end(), [stream](const auto& connection) {
    return connection.stream == stream;
  });
  CO_ASSERT(match != theirs.end());
  const Bytes words = bytes_of("stream " + std::to_string(stream));
  Status sent = co_await io::send_all(io, ours, words);
  CO_ASSERT(sent.ok());
  Bytes heard(words.size());
  Status received = co_await io::receive_exactly(io, match->socket, heard);
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
  CO_ASSERT(acceptor.control->ok() && acceptor.data->ok());
  for (std::uint16_t stream = 0; stream < streams; ++stream) {
    co_await expect_connected(io, sockets[stream], **acceptor.data, stream);
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
      Bytes(),                                              // silent
      pattern(kPreambleBytes, 9),                           // junk
      bytes_of("GET / HTTP/1.1\r\nHost: example\r\n\r\n"),  // shorter than a preamble
      to_bytes(control_preamble(session_of(0x77))),         // of another session
      to_bytes(control_preamble(kSession)),                 // no TLS after it
      to_bytes(data_preamble(kSession, 0, secret_of(50))),  // no secret yet to check it with
  };
  for (const Bytes& saying : sayings) {
    co_await connect_and_say(io, address, saying, strangers.emplace_back());
  }
}

// Strangers who must be turned away at once, with the session's own streams beside them.
io::Task<void> disturb_later(io::Io& io, io::SocketAddress address, const SessionSecret& secret,
                             std::vector<io::Socket>& strangers) {
  PreambleBytes reflected = data_preamble(kSession, 1, secret);
  const Mac mac = secret.join_mac(covered_by_mac(reflected), Direction::kToInitiator);
  std::copy(mac.begin(), mac.end(), reflected.begin() + kPreambleMacOffset);
  PreambleBytes renumbered = data_preamble(kSession, 0, secret);
  renumbered[10] = std::byte{1};
  const PreambleBytes sayings[] = {
      data_preamble(kSession, 0, secret),                        // replayed
      data_preamble(kSession, 1, secret_of(50)),                 // another secret's MAC
      data_preamble(session_of(0x77), 1, secret),                // of another session
      data_preamble(kSession, limits::kStreamsMax, secret),      // proven, over any bound
      data_preamble(kSession, limits::kStreamsMax - 1, secret),  // proven, not agreed on
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
  CO_ASSERT(acceptor.control->ok() && acceptor.data->ok());
  EXPECT_EQ((**acceptor.data).size(), 3u);
  for (std::uint16_t stream = 0; stream < 3; ++stream) {
    co_await expect_connected(io, sockets[stream], **acceptor.data, stream);
  }
  // The stream over the agreed number got its answer before it was closed; the others got nothing.
  for (std::size_t i = 0; i < later.size(); ++i) {
    Mac answer;
    if (i == 4) {
      Status answered = co_await io::receive_exactly(io, later[i], answer);
      EXPECT_TRUE(answered.ok());
    }
    co_await expect_closed(io, later[i]);
  }
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
  CO_ASSERT(acceptor.control->ok() && acceptor.data->ok());
  co_await expect_connected(io, stream, **acceptor.data, 0);
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
  const io::TimePoint deadline = io.environment().now() + std::chrono::milliseconds(50);
  Result<Connections> data = co_await listener.accept_data(2, deadline);
  EXPECT_EQ(data.status().code(), ErrorCode::kConnectTimeout);
  EXPECT_NE(data.status().message().find("2 of 2"), std::string::npos);
  co_await listener.stop();
}

TEST_P(SessionListenerTest, MissingStreamHitsTheDeadline) { run(miss_a_stream(control())); }

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
