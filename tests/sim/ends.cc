#include "ends.h"

#include <algorithm>

#include "flipping_stream.h"
#include "io/pause.h"
#include "transfer/report_builder.h"
#include "transfer/watchdog.h"

namespace fgsync::sim {
namespace {

// As in production.
constexpr std::chrono::seconds kConnectPatience{60};
constexpr std::chrono::seconds kConnectTimeout{15};
constexpr std::chrono::milliseconds kLook{100};

void let_bits_flip(transfer::Session& session, Process& process, RunPlan& plan) {
  if (plan.frames_until_flip < 0) return;
  for (transfer::DataStream& data : session.streams) {
    data.stream = std::make_unique<FlippingStream>(std::move(data.stream), process.world().random(),
                                                   plan.frames_until_flip);
  }
}

}  // namespace

// ---- The far end

bool FarEnd::announce(Handover& handover) {
  SimRuntime& runtime = process_.runtime();
  auto address = io::SocketAddress::parse(process_.host().address, 0);
  auto socket = process_.network().listen(*address);
  if (!socket.ok() || !process_.alive()) return false;
  handover_.address = *process_.network().local_address(*socket);
  runtime.environment().random_bytes(handover_.key);
  runtime.environment().random_bytes(handover_.session);
  handover = handover_;
  listener_ = std::make_unique<transport::SessionListener>(runtime.control(), std::move(*socket),
                                                           handover_.key, handover_.session);
  return true;
}

io::Task<void> FarEnd::run() {
  SimRuntime& runtime = process_.runtime();
  io::Io& io = runtime.control();
  io::Pause pause(io);
  io::TaskGroup watching;
  watching.spawn(io, watch_starter(&pause));
  auto control = co_await listener_->accept_control(runtime.environment().now() + kConnectPatience);
  pause.end();
  co_await watching.join(io);
  if (control.ok()) {
    co_await serve_control(std::move(*control));
  } else {
    status_ = control.status();
  }
  co_await listener_->stop();
  listener_.reset();
  process_.set_finished();
}

io::Task<void> FarEnd::watch_starter(io::Pause* pause) {
  while (true) {
    const bool on = co_await pause->sleep_for(kLook);
    if (!on) co_return;
    if (starter_gone_) {
      co_await listener_->stop();
      co_return;
    }
  }
}

io::Task<void> FarEnd::serve_control(transport::TlsControl control) {
  io::Io& io = process_.runtime().control();
  const transfer::SessionKeys keys{control.secret, handover_.session};
  transfer::Session session(process_.runtime(), std::move(control.stream), "the starting side",
                            cancel_);
  transfer::Role role;
  transfer::Watchdog watch(
      session,
      [this] {
        if (!starter_gone_) return Status();
        return Status(ErrorCode::kConnectionLost, "the side that started this one is gone");
      },
      [&] { return role.is_patient(); });
  io::TaskGroup watching;
  watching.spawn(io, watch.run());
  co_await take_role(&session, &role, &keys);
  watch.stop();
  co_await watching.join(io);
  status_ = session.status();
}

io::Task<void> FarEnd::take_role(transfer::Session* session, transfer::Role* role,
                                 const transfer::SessionKeys* keys) {
  Status greeted = co_await transfer::exchange_hello(*session);
  if (!greeted.ok()) {
    co_await transfer::refuse(*session, greeted);
    co_return;
  }
  Result<wire::Setup> setup = co_await transfer::answer_setup(*session, plan_.streams, "sim");
  if (!setup.ok()) {
    co_await transfer::refuse(*session, setup.status());
    co_return;
  }
  transfer::OpenStreams open_streams = [this, session, keys]() -> io::Task<Status> {
    return accept_streams(*session, *keys, *listener_,
                          session->environment().now() + kConnectPatience);
  };
  if (setup->initiator == wire::Role::kReceiver) {
    co_await transfer::run_sender(session, role, setup->sources, open_streams);
  } else {
    co_await transfer::run_receiver(session, role, setup->target,
                                    transfer::make_session_name(session->environment()),
                                    open_streams);
  }
}

// ---- The near end

io::Task<void> NearEnd::run() {
  SimRuntime& runtime = process_.runtime();
  const io::TimePoint deadline = runtime.environment().now() + kConnectTimeout;
  auto local = runtime.environment().network().source_address_for(handover_.address);
  auto connected = co_await transport::connect_control(runtime.control(), handover_.address, *local,
                                                       handover_.key, handover_.session, deadline);
  if (connected.ok()) {
    co_await with_session(std::move(*connected), deadline);
  } else {
    report_.status = connected.status();
  }
  report_.exit_code = exit_status_of(report_);
  process_.set_finished();
}

io::Task<void> NearEnd::with_session(transport::TlsControl control, io::TimePoint deadline) {
  io::Io& io = process_.runtime().control();
  const transfer::SessionKeys keys{control.secret, handover_.session};
  transfer::Session session(process_.runtime(), std::move(control.stream), "far", cancel_);
  transfer::Role role;
  transfer::Watchdog watch(
      session, [] { return Status(); }, [&] { return role.is_patient(); });
  io::TaskGroup watching;
  watching.spawn(io, watch.run());
  co_await take_role(&session, &role, &keys, deadline);
  watch.stop();
  co_await watching.join(io);
  transfer::fill_report(report_, session, role);
}

namespace {

io::Task<Status> connect_and_wrap(transfer::Session* session, const transfer::SessionKeys* keys,
                                  io::SocketAddress peer, io::TimePoint deadline, Process* process,
                                  RunPlan* plan) {
  Status connected =
      co_await transfer::connect_streams(*session, *keys, peer, std::nullopt, deadline);
  if (connected.ok()) let_bits_flip(*session, *process, *plan);
  co_return connected;
}

}  // namespace

io::Task<void> NearEnd::take_role(transfer::Session* session, transfer::Role* role,
                                  const transfer::SessionKeys* keys, io::TimePoint deadline) {
  {
    io::DeadlineGuard guard(session->control_io(), deadline, [session] {
      session->fail(Status(ErrorCode::kConnectTimeout,
                           session->peer() + ": the session was not agreed on in time"));
    });
    Status opened = co_await open_remote(session);
    if (!opened.ok()) {
      co_await transfer::refuse(*session, opened);
      co_return;
    }
  }
  transfer::OpenStreams open_streams = [this, session, keys, deadline] {
    return connect_and_wrap(session, keys, handover_.address,
                            std::max(deadline, session->environment().now() + kConnectTimeout),
                            &process_, &plan_);
  };
  if (plan_.push) {
    std::vector<std::string> paths = {plan_.source};
    co_await transfer::run_sender(session, role, std::move(paths), open_streams);
  } else {
    co_await transfer::run_receiver(session, role, plan_.target,
                                    transfer::make_session_name(session->environment()),
                                    open_streams);
  }
}

io::Task<Status> NearEnd::open_remote(transfer::Session* session) {
  Status greeted = co_await transfer::exchange_hello(*session);
  if (!greeted.ok()) co_return greeted;
  wire::Setup setup;
  setup.initiator = plan_.push ? wire::Role::kSender : wire::Role::kReceiver;
  setup.has_aes = true;
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
  Result<wire::SetupReply> reply = co_await transfer::propose_setup(*session, setup);
  co_return reply.ok() ? Status() : reply.status();
}

}  // namespace fgsync::sim
