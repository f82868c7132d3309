// The run as its user sees it: local, or with a far side that a remote shell starts.
#include <algorithm>
#include <cstring>

#include "base/limits.h"
#include "fgsync/transfer.h"
#include "io/runtime.h"
#include "transfer/data_connections.h"
#include "transfer/far_side.h"
#include "transfer/report_builder.h"
#include "transfer/resources.h"
#include "transfer/roles.h"
#include "transfer/watchdog.h"
#include "transport/address_policy.h"
#include "transport/connection.h"
#include "transport/memory_stream.h"

namespace fgsync {
namespace {

using namespace transfer;  // NOLINT: this file is the top of the layer

// One run from start to report.
class Run {
 public:
  Run(const TransferOptions& options, Observer& observer, CancelToken& cancel)
      : options_(options), observer_(observer), cancel_(cancel) {}
  TransferReport run();

 private:
  Status prepare();
  Status execute();
  Status start_far_side();
  Status choose_addresses();
  io::Task<void> run_local();
  io::Task<void> run_remote();
  io::Task<Status> open_remote(Session* session);
  io::Task<void> push_or_pull(Session* session, Role* role, const SessionKeys* keys,
                              io::TimePoint deadline);
  io::Task<void> half(Session* session, Role* role, bool sends);
  wire::Setup setup() const;
  Status tick(Session* session, const Role* role);
  void conclude(Session& session, Role& role);
  void note(const std::string& text);

  bool pushes() const { return options_.target.is_remote(); }
  bool wants_paths() const { return options_.dry_run || options_.report_entries; }
  bool is_local() const { return !pushes() && !options_.sources.front().is_remote(); }
  const Location& far_location() const {
    return pushes() ? options_.target : options_.sources.front();
  }
  std::vector<std::string> source_paths() const;

  const TransferOptions& options_;
  Observer& observer_;
  CancelToken& cancel_;
  TransferReport report_;
  std::uint16_t streams_ = 1;
  std::unique_ptr<io::Runtime> runtime_;
  std::unique_ptr<FarSide> far_side_;
  io::SocketAddress peer_;
  std::optional<io::SocketAddress> local_;
  double rate_limit_seconds_ = 0;
  io::TimePoint start_{};
};

TransferReport Run::run() {
  Status status = prepare();
  if (status.ok()) status = execute();
  if (!status.ok()) report_.status = status;
  if (runtime_) {
    report_.seconds = std::chrono::duration<double>(runtime_->environment().now() - start_).count();
    report_.io_engine = runtime_->engine_name();
  }
  report_.limited_by = limited_by(report_, rate_limit_seconds_);
  report_.exit_code = exit_status_of(report_);
  return std::move(report_);
}

Status Run::prepare() {
  if (options_.sources.empty()) return Status(ErrorCode::kInvalidArgument, "no source");
  if (options_.transport == Transport::kRdma) {
    return Status(ErrorCode::kUnsupported, "RDMA is not offered by this version");
  }
  if (options_.streams > limits::kStreamsMax) {
    return Status(ErrorCode::kInvalidArgument,
                  "--streams: at most " + std::to_string(limits::kStreamsMax));
  }
  if (options_.chunk_bytes != 0 && !is_possible_chunk_size(options_.chunk_bytes)) {
    return Status(ErrorCode::kInvalidArgument, "--chunk-size: a multiple of 4K from 64K to 16M");
  }
  const std::size_t cores = io::usable_cores();
  const std::size_t descriptors = io::raise_descriptor_limit();
  const std::uint16_t affordable = affordable_streams(descriptors);
  if (affordable == 0) return too_few_descriptors(descriptors);
  streams_ = options_.streams > 0 ? std::uint16_t(options_.streams) : automatic_streams(cores);
  if (streams_ > affordable) {
    if (options_.streams > 0) {
      note("streams: " + std::to_string(affordable) + " instead of " + std::to_string(streams_) +
           ": the limit of open files allows no more");
    }
    streams_ = affordable;
  }
  auto runtime = io::create_runtime(runtime_options(options_.io_engine, streams_, cores));
  if (!runtime.ok()) return runtime.status();
  runtime_ = std::move(*runtime);
  start_ = runtime_->environment().now();
  report_.started = runtime_->environment().wall_clock();
  if (options_.io_engine == IoEngine::kAuto && !std::strcmp(runtime_->engine_name(), "posix")) {
    note("io engine: posix: " + io::uring_unavailable_reason());
  }
  return Status();
}

Status Run::execute() {
  if (is_local()) {
    report_.transport = "local";
    report_.cipher = "none";
    runtime_->run(run_local());
    return report_.status;
  }
  report_.transport = "tcp";
  FGSYNC_RETURN_IF_ERROR(start_far_side());
  FGSYNC_RETURN_IF_ERROR(choose_addresses());
  runtime_->run(run_remote());
  far_side_->finish(report_.status.ok());
  return report_.status;
}

Status Run::start_far_side() {
  wire::StartRequest request;
  request.version_min = wire::kVersionMin;
  request.version_max = wire::kVersionMax;
  request.io_engine = options_.io_engine;
  request.streams = streams_;
  request.ports = options_.ports;
  request.allow_public = options_.allow_public;
  request.family = options_.family;
  if (!options_.bind.empty()) {
    auto local = transport::resolve_bind(runtime_->environment().network(), options_.bind,
                                         options_.family, options_.allow_public);
    if (!local.ok()) return local.status();
    local_ = *local;
    request.facing = local->host_text();
  }
  auto far_side =
      FarSide::start(options_, far_location(), request, runtime_->environment(), cancel_);
  if (!far_side.ok()) return far_side.status();
  far_side_ = std::move(*far_side);
  return Status();
}

// Both ends of every connection are pinned to one private address each.
Status Run::choose_addresses() {
  const wire::StartAnswer& answer = far_side_->answer();
  auto peer = io::SocketAddress::parse(answer.address, answer.port);
  // An address that the user gave is better than the far side's own idea of it: it carries this
  // host's scope, and it is the one that is known to be reachable.
  if (answer.choice == wire::AddressChoice::kReached) {
    auto given = io::SocketAddress::parse(far_location().host, answer.port);
    if (given.ok()) peer = given;
  }
  if (!peer.ok()) return peer.status();
  peer_ = *peer;
  FGSYNC_RETURN_IF_ERROR(transport::check_address(peer_, options_.allow_public));
  if (local_) return Status();
  auto source = runtime_->environment().network().source_address_for(peer_);
  if (!source.ok()) return source.status();
  FGSYNC_RETURN_IF_ERROR(transport::check_address(*source, options_.allow_public));
  local_ = *source;
  local_->set_port(0);
  return Status();
}

std::vector<std::string> Run::source_paths() const {
  std::vector<std::string> paths;
  for (const Location& source : options_.sources) paths.push_back(source.path);
  return paths;
}

wire::Setup Run::setup() const {
  wire::Setup setup;
  setup.initiator = pushes() ? wire::Role::kSender : wire::Role::kReceiver;
  setup.dry_run = options_.dry_run;
  setup.make_parents = options_.make_parents;
  setup.has_aes = transport::processor_has_aes();
  setup.direct_io = options_.direct_io;
  setup.cipher = options_.cipher;
  setup.streams = streams_;
  setup.chunk_bytes =
      std::uint32_t(choose_chunk_bytes(options_.chunk_bytes, options_.bandwidth_limit));
  setup.timeout_ms = std::uint32_t(options_.timeout.count());
  setup.bandwidth_limit = options_.bandwidth_limit;
  if (pushes()) {
    setup.target = options_.target.path;
  } else {
    setup.sources = source_paths();
  }
  return setup;
}

// ---- Both halves in this process.

io::Task<void> Run::run_local() {
  io::Io& io = runtime_->control();
  auto [sender_end, receiver_end] = transport::make_memory_control_streams(io, io);
  Session sender(*runtime_, std::move(sender_end), "the receiving half", cancel_);
  Session receiver(*runtime_, std::move(receiver_end), "the sending half", cancel_);
  const wire::Setup agreed = setup();
  for (Session* session : {&sender, &receiver}) {
    session->parameters = {.dry_run = agreed.dry_run,
                           .make_parents = agreed.make_parents,
                           .direct_io = agreed.direct_io,
                           .cipher = Cipher::kNone,
                           .streams = agreed.streams,
                           .chunk_bytes = agreed.chunk_bytes,
                           .bandwidth_limit = agreed.bandwidth_limit,
                           .timeout = options_.timeout};
  }
  if (wants_paths()) sender.want_paths();
  auto pool = make_buffer_pool(sender.parameters);
  if (!pool.ok()) {
    report_.status = pool.status();
    co_return;
  }
  sender.pool = receiver.pool = pool->get();
  for (std::uint16_t i = 0; !agreed.dry_run && i < agreed.streams; ++i) {
    io::Io& worker = runtime_->worker(i % runtime_->worker_count());
    auto [first, second] = transport::make_memory_streams(worker, worker);
    sender.streams.push_back({std::move(first), &worker});
    receiver.streams.push_back({std::move(second), &worker});
  }

  Role sender_role, receiver_role;
  Watchdog sender_watch(
      sender, [&] { return tick(&sender, &sender_role); },
      [&] { return sender_role.is_patient(); });
  Watchdog receiver_watch(
      receiver, [] { return Status(); }, [&] { return sender_role.is_patient(); });
  io::TaskGroup watching, working;
  watching.spawn(io, sender_watch.run());
  watching.spawn(io, receiver_watch.run());
  working.spawn(io, half(&sender, &sender_role, true));
  working.spawn(io, half(&receiver, &receiver_role, false));
  co_await working.join(io);
  sender_watch.stop();
  receiver_watch.stop();
  co_await watching.join(io);

  conclude(sender, sender_role);
  if (report_.status.ok() && receiver.failed()) report_.status = receiver.status();
  // One process: its processor time is counted once.
  report_.target_side.cpu_seconds = 0;
}

io::Task<Status> already_open() { co_return Status(); }

io::Task<void> Run::half(Session* session, Role* role, bool sends) {
  if (sends) {
    co_await run_sender(session, role, source_paths(), already_open);
  } else {
    co_await run_receiver(session, role, options_.target.path,
                          make_session_name(session->environment()), already_open);
  }
}

// ---- This half here, the other one on another host.

io::Task<void> Run::run_remote() {
  io::Io& io = runtime_->control();
  const wire::StartAnswer& answer = far_side_->answer();
  const io::TimePoint deadline = runtime_->environment().now() + options_.connect_timeout;
  auto connected = co_await transport::connect_control(io, peer_, local_, answer.psk,
                                                       answer.session_id, deadline);
  if (!connected.ok()) {
    report_.status = connected.status();
    if (answer.choice == wire::AddressChoice::kLoopback) {
      note(
          "the remote shell set no SSH_CONNECTION (sudo drops it), so the far side listened on "
          "loopback; --bind=ADDR of this host chooses the network");
    }
    co_return;
  }
  const SessionKeys keys{connected->secret, answer.session_id};
  Session session(*runtime_, std::move(connected->stream), far_location().host, cancel_);
  if (wants_paths()) session.want_paths();
  Role role;
  Watchdog watch(
      session, [&] { return tick(&session, &role); }, [&] { return role.is_patient(); });
  io::TaskGroup watching;
  watching.spawn(io, watch.run());

  co_await push_or_pull(&session, &role, &keys, deadline);

  watch.stop();
  co_await watching.join(io);
  report_.cipher = transport::cipher_name(session.parameters.cipher);
  conclude(session, role);
}

io::Task<void> Run::push_or_pull(Session* session, Role* role, const SessionKeys* keys,
                                 io::TimePoint deadline) {
  {
    io::DeadlineGuard guard(session->control_io(), deadline, [session] {
      session->fail(Status(ErrorCode::kConnectTimeout,
                           session->peer() + ": the session was not agreed on in time"));
    });
    Status opened = co_await open_remote(session);
    if (!opened.ok()) {
      co_await refuse(*session, opened);
      co_return;
    }
  }
  // Capturing is safe: the function is called, and its task ends, before this coroutine does.
  OpenStreams open_streams = [this, session, keys, deadline] {
    return connect_streams(
        *session, *keys, peer_, local_,
        std::max(deadline, session->environment().now() + options_.connect_timeout));
  };
  if (pushes()) {
    co_await run_sender(session, role, source_paths(), open_streams);
  } else {
    co_await run_receiver(session, role, options_.target.path,
                          make_session_name(session->environment()), open_streams);
  }
}

io::Task<Status> Run::open_remote(Session* session) {
  Status greeted = co_await exchange_hello(*session);
  if (!greeted.ok()) co_return greeted;
  Result<wire::SetupReply> reply = co_await propose_setup(*session, setup());
  if (!reply.ok()) co_return reply.status();
  if (reply->streams < streams_) {
    note("streams: " + std::to_string(reply->streams) + ": " + session->peer() +
         " cannot serve more");
  }
  if (options_.io_engine == IoEngine::kAuto && reply->io_engine != runtime_->engine_name()) {
    note("io engine of " + session->peer() + ": " + reply->io_engine);
  }
  co_return Status();
}

// ---- What the user hears.

Status Run::tick(Session* session, const Role* role) {
  if (far_side_) far_side_->drain();
  ProgressSnapshot snapshot = role->progress();
  snapshot.seconds = std::chrono::duration<double>(session->environment().now() - start_).count();
  observer_.on_progress(snapshot);
  for (std::string& path : session->take_paths()) {
    observer_.on_entry(path);
    if (options_.dry_run) report_.planned.push_back(std::move(path));
  }
  return Status();
}

void Run::conclude(Session& session, Role& role) {
  (void)tick(&session, &role);
  const std::string source_host =
      options_.sources.front().is_remote() ? options_.sources.front().host + ":" : "";
  const std::string target_host = pushes() ? options_.target.host + ":" : "";
  const std::size_t count = std::min(role.source_displays.size(), role.target_displays.size());
  for (std::size_t i = 0; i < count; ++i) {
    report_.mapping.push_back(source_host + role.source_displays[i] + " -> " + target_host +
                              role.target_displays[i]);
  }
  std::vector<std::string> notes = std::move(report_.notes);
  fill_report(report_, session, role);
  if (options_.bandwidth_limit > 0) {
    rate_limit_seconds_ = double(report_.bytes.sent) / double(options_.bandwidth_limit);
  }
  report_.notes.insert(report_.notes.begin(), notes.begin(), notes.end());
}

void Run::note(const std::string& text) {
  report_.notes.push_back(text);
  observer_.on_note(text);
}

}  // namespace

TransferReport replicate(const TransferOptions& options, Observer& observer, CancelToken& cancel) {
  return Run(options, observer, cancel).run();
}

}  // namespace fgsync
