// The acceptor's half of connection.h.
#include <array>
#include <atomic>
#include <list>

#include "base/assert.h"
#include "base/mark.h"
#include "io/sync.h"
#include "transport/connection.h"
#include "transport/preamble.h"
#include "transport/tls_stream.h"

namespace fgsync::transport {
namespace {

// How long accepting rests after a failure: out of descriptors, most likely, which passes.
constexpr std::chrono::milliseconds kAcceptPause{100};

// A connection on its way to prove itself. What is not handed out by the end of that is closed.
struct Unproven {
  explicit Unproven(io::Socket accepted) : socket(std::move(accepted)) {}
  // Makes whatever it waits for return.
  void give_up() {
    if (tls) tls->shutdown();
    socket.shutdown();
    wake.set();
  }

  io::Socket socket;               // until TLS has it, or it is handed out
  std::unique_ptr<TlsStream> tls;  // of a control connection
  io::Event wake;                  // the session's secret is there, or there is no more to wait for
};

}  // namespace

// All of it runs on the control worker; the channels alone are used from others.
struct SessionListener::State {
  // The connections of one stream.
  struct Joined {
    std::optional<std::uint32_t> generation;  // the newest that has proved itself
    io::Channel<DataConnection> connections;  // at most one: what was not taken is replaced
  };

  State(io::Io& control_io, io::Socket listening, const PreSharedKey& pre_shared_key,
        const SessionId& session_id)
      : io(control_io), listener(std::move(listening)), key(pre_shared_key), session(session_id) {}
  ~State() { wipe(key); }

  io::Task<void> accept_connections();
  io::Task<void> prove(std::list<Unproven>::iterator connection);
  io::Task<void> prove_control(Unproven& connection, const io::DeadlineGuard& guard);
  io::Task<void> prove_data(Unproven& connection, const io::DeadlineGuard& guard,
                            const PreambleBytes& bytes, const Preamble& preamble);
  // Why a wait for connections ended without them.
  Status ended(std::string what) const;

  io::Io& io;
  io::Socket listener;
  PreSharedKey key;
  const SessionId session;
  bool started = false;
  std::atomic<bool> stopping{false};
  std::atomic<bool> data_over{false};  // nobody takes data connections any more
  io::TaskGroup tasks;
  std::list<Unproven> unproven;
  std::optional<SessionSecret> secret;  // from the one control connection
  std::size_t streams = limits::kStreamsMax;
  std::function<void(std::uint16_t, std::uint32_t)> newer;
  io::Channel<Result<TlsControl>> control;
  std::array<Joined, limits::kStreamsMax> joined;  // by stream number
};

io::Task<void> SessionListener::State::accept_connections() {
  while (!stopping) {
    Result<io::Socket> accepted = co_await io::accept(io, listener);
    if (stopping) co_return;
    if (!accepted.ok()) {
      mark("listener_accept_failed");
      co_await io::sleep_until(io, io.environment().now() + kAcceptPause);
      continue;
    }
    if (unproven.size() >= kUnprovenMax) continue;
    const auto connection = unproven.emplace(unproven.end(), std::move(*accepted));
    tasks.spawn(io, prove(connection));
  }
}

io::Task<void> SessionListener::State::prove(std::list<Unproven>::iterator connection) {
  {
    Unproven* const unproved = &*connection;
    const io::DeadlineGuard guard(io, io.environment().now() + kHandshakeDeadline, [unproved] {
      mark("listener_unproven_given_up");
      unproved->give_up();
    });
    PreambleBytes bytes;
    Status received = co_await io::receive_exactly(io, unproved->socket, bytes);
    std::optional<Preamble> preamble;
    if (received.ok()) preamble = parse_preamble(bytes);
    if (preamble && equal_secret(preamble->session, session)) {
      if (preamble->is_control) {
        co_await prove_control(*unproved, guard);
      } else {
        co_await prove_data(*unproved, guard, bytes, *preamble);
      }
    }
  }
  unproven.erase(connection);
}

io::Task<void> SessionListener::State::prove_control(Unproven& connection,
                                                     const io::DeadlineGuard& guard) {
  if (secret || stopping) co_return;
  Result<std::unique_ptr<TlsStream>> created = TlsStream::create(
      io, std::move(connection.socket), TlsRole::kAcceptor, key, session, kTlsRecordsPerKey);
  if (!created.ok()) {  // not the peer's doing: whoever waits is told
    control.push(created.status());
    co_return;
  }
  connection.tls = std::move(*created);
  Result<SessionSecret> agreed = co_await connection.tls->handshake();
  // Another one may have been faster.
  if (!agreed.ok() || guard.expired() || stopping || secret) co_return;
  secret = *agreed;
  wipe(key);
  TlsControl established{std::move(connection.tls), *agreed};
  control.push(std::move(established));
  for (Unproven& waiting : unproven) waiting.wake.set();
}

io::Task<void> SessionListener::State::prove_data(Unproven& connection,
                                                  const io::DeadlineGuard& guard,
                                                  const PreambleBytes& bytes,
                                                  const Preamble& preamble) {
  // The initiator finishes the TLS handshake first, so its data connections can be here before our
  // side of the handshake has read the last message.
  if (!secret) {
    mark("listener_data_before_secret");
    co_await connection.wake.wait(io);
  }
  if (!secret || guard.expired() || stopping) co_return;
  const Mac expected = secret->join_mac(covered_by_mac(bytes), Direction::kFromInitiator);
  if (!equal_secret(preamble.mac, expected)) co_return;
  if (preamble.stream >= streams || data_over) co_return;
  Joined& stream = joined[preamble.stream];
  // Recorded by somebody and sent again, or overtaken by the next one.
  if (stream.generation && preamble.generation <= *stream.generation) co_return;
  stream.generation = preamble.generation;
  const Mac answer = secret->join_mac(covered_by_mac(bytes), Direction::kToInitiator);
  Status answered = co_await io::send_all(io, connection.socket, answer);
  if (!answered.ok() || guard.expired() || stopping || preamble.stream >= streams) co_return;
  if (stream.generation != preamble.generation) co_return;  // a newer one was faster
  DataConnection proven;
  proven.generation = preamble.generation;
  proven.socket = std::move(connection.socket);
  stream.connections.clear();
  (void)stream.connections.push(std::move(proven));
  if (newer) newer(preamble.stream, preamble.generation);
}

Status SessionListener::State::ended(std::string what) const {
  if (stopping) return Status(ErrorCode::kCancelled, "waiting for " + what + ": stopped");
  return Status(ErrorCode::kConnectTimeout, "waiting for " + what + ": none came in time");
}

SessionListener::SessionListener(io::Io& io, io::Socket listener, PreSharedKey key,
                                 SessionId session)
    : state_(std::make_unique<State>(io, std::move(listener), key, session)) {
  wipe(key);
}

SessionListener::~SessionListener() { FGSYNC_ASSERT(!state_->started || state_->stopping); }

io::Task<Result<TlsControl>> SessionListener::accept_control(io::TimePoint deadline) {
  State* const state = state_.get();
  FGSYNC_ASSERT(!state->started);
  if (state->stopping) co_return state->ended("the control connection");
  state->started = true;
  state->tasks.spawn(state->io, state->accept_connections());
  const io::DeadlineGuard guard(state->io, deadline, [state] { state->control.close(); });
  std::optional<Result<TlsControl>> control = co_await state->control.pop(state->io);
  if (!control) co_return state->ended("the control connection");
  co_return std::move(*control);
}

void SessionListener::expect_streams(std::uint16_t streams) {
  FGSYNC_ASSERT(streams <= limits::kStreamsMax);
  state_->streams = streams;
  for (std::size_t i = streams; i < limits::kStreamsMax; ++i) {
    state_->joined[i].connections.clear();
  }
}

io::Task<Result<SessionListener::DataConnection>> SessionListener::accept_data(
    io::Io& io, std::uint16_t stream) {
  FGSYNC_ASSERT(stream < limits::kStreamsMax);
  std::optional<DataConnection> connection = co_await state_->joined[stream].connections.pop(io);
  if (!connection) co_return state_->ended("data connection " + std::to_string(stream + 1));
  co_return std::move(*connection);
}

void SessionListener::on_newer(std::function<void(std::uint16_t, std::uint32_t)> tell) {
  state_->newer = std::move(tell);
}

void SessionListener::end_waiting() {
  state_->control.close();
  state_->data_over = true;
  for (State::Joined& stream : state_->joined) stream.connections.close_and_clear();
}

io::Task<void> SessionListener::stop() {
  State* const state = state_.get();
  state->stopping = true;
  state->listener.shutdown();
  for (Unproven& connection : state->unproven) connection.give_up();
  state->control.close_and_clear();
  for (State::Joined& stream : state->joined) stream.connections.close_and_clear();
  co_await state->tasks.join(state->io);
  state->listener.reset();
}

}  // namespace fgsync::transport
