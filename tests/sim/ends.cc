#include "ends.h"

#include <algorithm>

#include "flipping_stream.h"

namespace fgsync::sim {
namespace {

// As in production.
constexpr std::chrono::seconds kConnectTimeout{15};

using Connection = transfer::DataStream::Connection;

// Connections whose sender may have bad memory.
class FlippingConnections final : public transfer::DataConnections {
 public:
  FlippingConnections(transfer::Session& session, std::unique_ptr<DataConnections> connections,
                      Process& process, RunPlan& plan)
      : session_(session), connections_(std::move(connections)), process_(process), plan_(plan) {}

  io::Task<Status> open() override {
    Status opened = co_await connections_->open();
    for (const auto& stream : session_.streams) stream->replace(wrap(stream->connection()));
    co_return opened;
  }
  io::Task<Result<Connection>> replace(std::uint16_t stream, Status lost) override {
    Result<Connection> next = co_await connections_->replace(stream, std::move(lost));
    if (!next.ok()) co_return next;
    co_return wrap(std::move(*next));
  }
  void stop() override { connections_->stop(); }

 private:
  Connection wrap(Connection connection) {
    if (plan_.frames_until_flip < 0) return connection;
    connection.stream = std::make_shared<FlippingStream>(
        std::move(connection.stream), process_.world().random(), plan_.frames_until_flip);
    return connection;
  }

  transfer::Session& session_;
  const std::unique_ptr<DataConnections> connections_;
  Process& process_;
  RunPlan& plan_;
};

transfer::DecorateConnections flipping(Process& process, RunPlan& plan) {
  return [&process, &plan](transfer::Session& session,
                           std::unique_ptr<transfer::DataConnections> connections) {
    return std::make_unique<FlippingConnections>(session, std::move(connections), process, plan);
  };
}

}  // namespace

// ---- The far end

std::optional<transfer::FarAddress> FarEnd::announce() {
  SimRuntime& runtime = process_.runtime();
  auto address = io::SocketAddress::parse(process_.host().address, 0);
  auto socket = process_.network().listen(*address);
  if (!socket.ok() || !process_.alive()) return std::nullopt;
  transfer::FarAddress far;
  far.peer = *process_.network().local_address(*socket);
  runtime.environment().random_bytes(far.key);
  runtime.environment().random_bytes(far.session);
  session_.emplace(
      runtime, std::move(*socket), far.key, far.session,
      transfer::FarSession::Settings{.streams_max = plan_.streams,
                                     .starter_is_gone = [this] { return starter_gone_; },
                                     .decorate = flipping(process_, plan_)},
      cancel_);
  return far;
}

io::Task<void> FarEnd::run() {
  co_await session_->run();
  session_.reset();
  process_.set_finished();
}

// ---- The near end

io::Task<void> NearEnd::run() {
  transfer::RemoteRun::Plan plan;
  plan.setup = setup();
  plan.sources = {plan_.source};
  plan.target = plan_.target;
  plan.host = "far";
  plan.wants_changes = plan_.on_replicated || plan_.on_difference;
  plan.connect_timeout = kConnectTimeout;
  plan.retry_for = plan_.retry_for;
  plan.decorate = flipping(process_, plan_);
  {
    transfer::RemoteRun run(process_.runtime(), std::move(plan), far_host_, *this, cancel_);
    co_await run.run(&report_);
  }
  report_.exit_code = exit_status_of(report_);
  process_.set_finished();
}

wire::Setup NearEnd::setup() const {
  wire::Setup setup;
  setup.initiator = plan_.push ? wire::Role::kSender : wire::Role::kReceiver;
  setup.dry_run = plan_.dry_run;
  setup.compare = plan_.compare;
  setup.has_aes = process_.runtime().environment().has_aes();
  setup.durability = plan_.durability;
  setup.read_back = plan_.read_back;
  setup.fail_if_locked = plan_.fail_if_locked;
  setup.publish_tree = plan_.publish_tree;
  setup.selection = plan_.selection;
  setup.changes = plan_.changes;
  setup.direct_io = plan_.direct_io;
  setup.cipher = plan_.cipher;
  setup.streams = plan_.streams;
  setup.chunk_bytes = plan_.chunk_bytes;
  setup.timeout_ms = std::uint32_t(plan_.timeout.count());
  setup.bandwidth_limit = plan_.bandwidth_limit;
  if (plan_.push) {
    setup.target = plan_.target;
  } else {
    setup.sources = {plan_.source};
  }
  return setup;
}

void NearEnd::on_tick(transfer::Session& session, const ProgressSnapshot& progress) {
  for (const EntryChange& change : session.take_changes()) {
    if (plan_.on_replicated && change.is_replicated) plan_.on_replicated(change.path);
  }
  for (const Difference& found : session.take_differences()) plan_.on_difference(found);
  if (progress.bytes_done < shown_.bytes_done || progress.files_done < shown_.files_done ||
      (shown_.total_known && !progress.total_known)) {
    process_.world().violate("the progress runs backwards");
  }
  if (progress.total_known && progress.bytes_done > progress.bytes_total) {
    process_.world().violate("the progress runs past its end");
  }
  shown_ = progress;
}

void NearEnd::on_note(const std::string& note) { process_.world().trace("note", 0, 0, note); }

}  // namespace fgsync::sim
