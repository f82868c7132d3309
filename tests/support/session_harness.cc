#include "support/session_harness.h"

#include <gtest/gtest.h>

#include "transfer/watchdog.h"
#include "transport/memory_stream.h"

namespace fgsync::testing {
namespace {

using transfer::Role;
using transfer::Session;
using transfer::Watchdog;

// A run that takes longer hangs; the slowest one, under the thread sanitizer, takes a tenth of it.
constexpr std::chrono::seconds kDeadline{40};

HalfOutcome outcome_of(Session& session) {
  std::vector<std::string> paths;
  for (EntryChange& change : session.take_changes()) paths.push_back(std::move(change.path));
  return {session.status(), session.errors().errors(), session.errors().notes(), std::move(paths),
          session.take_differences()};
}

void expire(Session* session) {
  ADD_FAILURE() << "the session hangs";
  session->fail(Status(ErrorCode::kTimeout, "the test's deadline"));
}

io::Task<void> play_sender(Session* session, Role* role, std::vector<std::string> paths) {
  co_await run_sender(session, role, std::move(paths), nullptr);
}

io::Task<void> play_receiver(Session* session, Role* role, std::string target) {
  co_await run_receiver(session, role, std::move(target), "test", nullptr);
}

template <typename Half>
io::Task<void> play_half(Half* half) {
  co_await half->run();
}

io::Task<void> play_script(Script script, ScriptedPeer* peer) {
  io::Task<void> playing = script(peer);
  co_await playing;
  co_await peer->hear_out();
}

io::Task<void> drop_frames(ScriptedPeer* peer, std::size_t stream) {
  co_await peer->drop_frames(stream);
}

}  // namespace

std::string LocalOutcome::text() const {
  std::string text = "sender: " + sender.status.message() + "; receiver: ";
  text += receiver.status.message();
  for (const HalfOutcome* half : {&sender, &receiver}) {
    for (const ErrorEntry& error : half->errors) text += "; " + error.path + ": " + error.message;
  }
  return text;
}

LocalOutcome SessionHarness::replicate(std::vector<std::string> sources, std::string target) {
  LocalOutcome outcome;
  runtime_->run(run_both(std::move(sources), std::move(target), &outcome));
  return outcome;
}

io::Task<void> SessionHarness::run_both(std::vector<std::string> sources, std::string target,
                                        LocalOutcome* outcome) {
  io::Io& io = runtime_->control();
  DamagingStreams damaging(stream_damage);
  auto [sender_end, receiver_end] = transport::make_memory_control_streams(io, io);
  Session sender(*runtime_, damaging.wrap(std::move(sender_end)), "receiver", cancel_);
  Session receiver(*runtime_, damaging.wrap(std::move(receiver_end)), "sender", cancel_);
  sender.parameters = receiver.parameters = parameters;
  sender.want_changes();
  receiver.want_changes();
  auto pool = transfer::make_buffer_pool(parameters);
  sender.pool = receiver.pool = pool->get();
  std::optional<BreakableConnections> connections;
  if (breakage) connections.emplace(sender, receiver, *breakage).open();
  for (std::uint16_t i = 0; !breakage && !parameters.dry_run && i < parameters.streams; ++i) {
    io::Io& worker = runtime_->worker(i % runtime_->worker_count());
    io::Io& other = runtime_->worker((i + 1) % runtime_->worker_count());
    auto [first, second] = transport::make_memory_streams(worker, other);
    sender.streams.push_back(transfer::make_stream(worker, std::move(first)));
    receiver.streams.push_back(transfer::make_stream(other, damaging.wrap(std::move(second))));
  }
  Role sender_role, receiver_role;
  Watchdog sender_watch(
      sender, [] { return Status(); }, [] { return false; });
  Watchdog receiver_watch(
      receiver, [] { return Status(); }, [] { return false; });
  io::TaskGroup watching, working;
  {
    io::DeadlineGuard deadline(io, runtime_->environment().now() + kDeadline,
                               [&sender] { expire(&sender); });
    watching.spawn(io, sender_watch.run());
    watching.spawn(io, receiver_watch.run());
    working.spawn(io, play_sender(&sender, &sender_role, std::move(sources)));
    working.spawn(io, play_receiver(&receiver, &receiver_role, std::move(target)));
    co_await working.join(io);
  }
  sender_watch.stop();
  receiver_watch.stop();
  co_await watching.join(io);
  outcome->sender = outcome_of(sender);
  outcome->receiver = outcome_of(receiver);
  if (sender_role.sender) {
    outcome->files = sender_role.sender->files();
    outcome->bytes = sender_role.sender->bytes();
    outcome->sender_digest = sender_role.sender->digest().hex();
  }
  if (sender_role.compare_sender) {
    outcome->files = sender_role.compare_sender->files();
    outcome->bytes = sender_role.compare_sender->bytes();
  }
  if (receiver_role.receiver) outcome->receiver_digest = receiver_role.receiver->digest().hex();
  outcome->was_damaged = damaging.damaged() > 0;
  if (connections) outcome->connections_broken = connections->broken();
  if (connections) outcome->connections_made_again = connections->made_again();
}

template <typename Half>
io::Task<void> SessionHarness::run_against(Script script, Session* session, Half* half,
                                           ScriptedPeer* peer, bool drops_frames) {
  io::Io& io = runtime_->control();
  Watchdog watch(
      *session, [] { return Status(); }, [] { return false; });
  io::TaskGroup watching, working, playing;
  {
    io::DeadlineGuard deadline(io, runtime_->environment().now() + kDeadline,
                               [session] { expire(session); });
    watching.spawn(io, watch.run());
    playing.spawn(io, play_script(script, peer));
    for (std::size_t i = 0; drops_frames && i < session->streams.size(); ++i) {
      playing.spawn(io, drop_frames(peer, i));
    }
    working.spawn(io, play_half(half));
    co_await working.join(io);
  }
  // The half under test is done with its streams; its peer hears that.
  session->control().shutdown();
  for (const auto& stream : session->streams) stream->shutdown();
  co_await playing.join(io);
  co_await peer->finish();
  watch.stop();
  co_await watching.join(io);
  abort_ = peer->heard_abort();
}

HalfOutcome SessionHarness::receive_from(Script script, const std::string& target,
                                         const std::string& expected, wire::EntryType type) {
  transfer::ResolvedTarget resolved;
  resolved.root = target;
  resolved.accept.replica_of_contents = expected.empty();
  resolved.accept.names = {expected};
  resolved.accept.displays = {target};
  if (!expected.empty()) resolved.expected[expected] = type;
  HalfOutcome outcome;
  runtime_->run(run_receiver_half(script, std::move(resolved), &outcome));
  return outcome;
}

io::Task<void> SessionHarness::run_receiver_half(Script script, transfer::ResolvedTarget target,
                                                 HalfOutcome* outcome) {
  io::Io& io = runtime_->control();
  auto pool = transfer::make_buffer_pool(parameters);
  auto [peer_end, session_end] = transport::make_memory_control_streams(io, io);
  Session session(*runtime_, std::move(session_end), "peer", cancel_);
  ScriptedPeer peer(io, std::move(peer_end), **pool);
  session.parameters = parameters;
  session.pool = pool->get();
  for (std::uint16_t i = 0; i < parameters.streams; ++i) {
    io::Io& worker = runtime_->worker(i % runtime_->worker_count());
    auto [first, second] = transport::make_memory_streams(io, worker);
    peer.add_stream(std::move(first));
    session.streams.push_back(transfer::make_stream(worker, std::move(second)));
  }
  Result<io::FileHandle> root = runtime_->files().open_path(target.root);
  EXPECT_TRUE(root.ok());
  session.want_changes();
  if (parameters.compare) {
    transfer::CompareReceiver half(session, target, std::move(*root));
    co_await run_against(script, &session, &half, &peer, /*drops_frames=*/false);
  } else {
    transfer::ReceiveSession half(session, target, std::move(*root), "test", wire::Checksum());
    co_await run_against(script, &session, &half, &peer, /*drops_frames=*/false);
  }
  *outcome = outcome_of(session);
}

HalfOutcome SessionHarness::send_to(Script script, const std::string& source) {
  HalfOutcome outcome;
  runtime_->run(run_sender_half(script, source, &outcome));
  return outcome;
}

io::Task<void> SessionHarness::run_sender_half(Script script, std::string source,
                                               HalfOutcome* outcome) {
  io::Io& io = runtime_->control();
  auto pool = transfer::make_buffer_pool(parameters);
  auto [peer_end, session_end] = transport::make_memory_control_streams(io, io);
  Session session(*runtime_, std::move(session_end), "peer", cancel_);
  ScriptedPeer peer(io, std::move(peer_end), **pool);
  session.parameters = parameters;
  session.pool = pool->get();
  for (std::uint16_t i = 0; i < parameters.streams; ++i) {
    io::Io& worker = runtime_->worker(i % runtime_->worker_count());
    auto [first, second] = transport::make_memory_streams(io, worker);
    peer.add_stream(std::move(first));
    session.streams.push_back(transfer::make_stream(worker, std::move(second)));
  }
  std::vector<std::string> paths;
  paths.push_back(source);
  auto sources = transfer::resolve_sources(runtime_->environment(), paths);
  EXPECT_TRUE(sources.ok());
  wire::TargetAccept accept;
  accept.replica_of_contents = true;
  accept.names = {""};
  accept.displays = {"/target"};
  session.want_changes();
  if (parameters.compare) {
    transfer::CompareSender half(session, *sources, std::move(accept));
    co_await run_against(script, &session, &half, &peer, /*drops_frames=*/true);
  } else {
    transfer::SendSession half(session, *sources, std::move(accept));
    co_await run_against(script, &session, &half, &peer, /*drops_frames=*/true);
  }
  *outcome = outcome_of(session);
}

}  // namespace fgsync::testing
