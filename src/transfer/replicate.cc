// The run as its user sees it: local, or with a far side that a remote shell starts.
#include <algorithm>
#include <cstring>
#include <set>

#include "base/limits.h"
#include "fgsync/transfer.h"
#include "io/runtime.h"
#include "transfer/remote_run.h"
#include "transfer/remote_shell_host.h"
#include "transfer/report_builder.h"
#include "transfer/resources.h"
#include "transfer/roles.h"
#include "transfer/source_mapping.h"
#include "transfer/watchdog.h"
#include "transport/memory_stream.h"

namespace fgsync {
namespace {

using namespace transfer;  // NOLINT: this file is the top of the layer

// One run from start to report.
class Run final : private RunListener {
 public:
  Run(const TransferOptions& options, Observer& observer, CancelToken& cancel)
      : options_(options), observer_(observer), cancel_(cancel) {}
  TransferReport run();

 private:
  Status prepare();
  Status execute();
  io::Task<void> run_local();
  io::Task<void> run_remote();
  io::Task<void> half(Session* session, Role* role, bool sends);
  wire::Setup setup() const;
  void on_tick(Session& session, const ProgressSnapshot& progress) override;
  void on_note(const std::string& note) override;
  void note(const std::string& text);

  bool pushes() const { return options_.target.is_remote(); }
  bool wants_all() const { return options_.dry_run || options_.compare || options_.report_changes; }
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
  std::set<std::string> notes_told_;
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
  const double rate_limit_seconds =
      options_.bandwidth_limit > 0 ? double(report_.bytes.sent) / double(options_.bandwidth_limit)
                                   : 0;
  report_.limited_by = limited_by(report_, rate_limit_seconds);
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
    runtime_->run(run_local());
    return report_.status;
  }
  report_.transport = "tcp";
  runtime_->run(run_remote());
  return report_.status;
}

std::vector<std::string> Run::source_paths() const {
  std::vector<std::string> paths;
  for (const Location& source : options_.sources) paths.push_back(source.path);
  return paths;
}

wire::Setup Run::setup() const {
  wire::Setup setup;
  setup.initiator = pushes() ? wire::Role::kSender : wire::Role::kReceiver;
  setup.dry_run = options_.dry_run || options_.compare;
  setup.compare = options_.compare;
  setup.make_parents = options_.make_parents;
  setup.read_back = options_.read_back;
  setup.resume = options_.resume;
  setup.fail_if_locked = options_.fail_if_locked;
  setup.publish_tree = options_.publish_tree;
  setup.durability = options_.durability;
  setup.last = options_.last;
  setup.selection = options_.selection;
  setup.changes = options_.changes;
  setup.selection.rules_see_source_name = ends_with_slash(options_.target.path);
  setup.has_aes = runtime_->environment().has_aes();
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
  sender.parameters =
      agreed_parameters(setup(), {.streams = streams_, .cipher = Cipher::kNone, .io_engine = {}});
  receiver.parameters = sender.parameters;
  sender.listed_paths = options_.listed_paths;
  if (wants_all()) sender.want_changes();
  auto pool = make_buffer_pool(sender.parameters);
  if (!pool.ok()) {
    report_.status = pool.status();
    co_return;
  }
  sender.pool = receiver.pool = pool->get();
  for (std::uint16_t i = 0; !sender.parameters.dry_run && i < streams_; ++i) {
    io::Io& worker = runtime_->worker(i % runtime_->worker_count());
    auto [first, second] = transport::make_memory_streams(worker, worker);
    sender.streams.push_back(make_stream(worker, std::move(first)));
    receiver.streams.push_back(make_stream(worker, std::move(second)));
  }

  Role sender_role, receiver_role;
  Watchdog sender_watch(
      sender,
      [&] {
        on_tick(sender, sender_role.progress());
        return Status();
      },
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

  on_tick(sender, sender_role.progress());
  TransferReport session;
  fill_report(session, sender, sender_role);
  session.mapping = mapping_of(sender_role, "", "");
  add_session(report_, std::move(session), /*found=*/std::nullopt);
  report_.cipher = "none";
  // Both halves are this program: no reason is told as news from the other one.
  if (receiver.failed() && (report_.status.ok() || sender.peer_aborted())) {
    report_.status = receiver.status();
  }
  // One process: its processor time is counted once.
  report_.target_side.cpu_seconds = 0;
}

io::Task<void> Run::half(Session* session, Role* role, bool sends) {
  if (sends) {
    co_await run_sender(session, role, source_paths(), nullptr);
  } else {
    co_await run_receiver(session, role, options_.target.path,
                          make_session_name(session->environment()), nullptr);
  }
}

// ---- This half here, the other one on another host.

io::Task<void> Run::run_remote() {
  RemoteRun::Plan plan;
  plan.setup = setup();
  plan.sources = source_paths();
  plan.target = options_.target.path;
  plan.listed_paths = options_.listed_paths;
  plan.host = far_location().host;
  (pushes() ? plan.target_prefix : plan.source_prefix) = far_location().host + ":";
  plan.wants_changes = wants_all();
  plan.names_far_engine = options_.io_engine == IoEngine::kAuto;
  plan.connect_timeout = options_.connect_timeout;
  plan.retry_for = options_.retry_for;
  RemoteShellHost far_host(*runtime_, options_, far_location(), streams_, cancel_);
  RemoteRun run(*runtime_, std::move(plan), far_host, *this, cancel_);
  co_await run.run(&report_);
}

// ---- What the user hears.

void Run::on_tick(Session& session, const ProgressSnapshot& progress) {
  ProgressSnapshot snapshot = progress;
  snapshot.seconds = std::chrono::duration<double>(session.environment().now() - start_).count();
  observer_.on_progress(snapshot);
  // As they come: a run that waits says so while it waits.
  const ErrorLog* const logs[] = {&session.errors(), &session.peer_errors()};
  for (const ErrorLog* const log : logs) {
    for (const std::string& note : log->notes()) on_note(note);
  }
  for (EntryChange& change : session.take_changes()) {
    observer_.on_change(change);
    if (options_.dry_run) report_.planned.push_back(std::move(change));
  }
  for (const Difference& found : session.take_differences()) observer_.on_difference(found);
}

void Run::on_note(const std::string& note) {
  if (notes_told_.insert(note).second) observer_.on_note(note);
}

void Run::note(const std::string& text) {
  report_.notes.push_back(text);
  on_note(text);
}

}  // namespace

TransferReport replicate(const TransferOptions& options, Observer& observer, CancelToken& cancel) {
  return Run(options, observer, cancel).run();
}

}  // namespace fgsync
