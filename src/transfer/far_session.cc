#include "transfer/far_session.h"

#include "transfer/watchdog.h"

namespace fgsync::transfer {
namespace {

// From the announcement to an authenticated control connection, and from there to all data
// connections.
constexpr std::chrono::seconds kConnectPatience{60};
constexpr std::chrono::milliseconds kLook{100};

}  // namespace

FarSession::FarSession(io::Runtime& runtime, io::Socket listener,
                       const transport::PreSharedKey& key, const transport::SessionId& id,
                       Settings settings, CancelToken& cancel)
    : runtime_(runtime),
      id_(id),
      settings_(std::move(settings)),
      cancel_(cancel),
      listener_(runtime.control(), std::move(listener), key, id) {}

io::Task<void> FarSession::run() {
  io::Io& io = runtime_.control();
  io::Pause pause(io);
  io::TaskGroup watching;
  watching.spawn(io, watch_starter(&pause));
  auto control = co_await listener_.accept_control(runtime_.environment().now() + kConnectPatience);
  pause.end();
  co_await watching.join(io);
  if (control.ok()) {
    co_await serve_control(std::move(*control));
  } else {
    status_ = control.status();
  }
  co_await listener_.stop();
}

// Until the control connection stands: an end of the starter ends the waiting.
io::Task<void> FarSession::watch_starter(io::Pause* pause) {
  while (true) {
    const bool on = co_await pause->sleep_for(kLook);
    if (!on) co_return;
    if (cancel_.requested() || settings_.starter_is_gone()) {
      co_await listener_.stop();
      co_return;
    }
  }
}

io::Task<void> FarSession::serve_control(transport::TlsControl control) {
  io::Io& io = runtime_.control();
  const SessionKeys keys{control.secret, id_};
  Session session(runtime_, std::move(control.stream), "the starting side", cancel_);
  session.on_failure([this] { listener_.end_waiting(); });
  Role role;
  Watchdog watch(
      session,
      [this] {
        if (!settings_.starter_is_gone()) return Status();
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

io::Task<void> FarSession::take_role(Session* session, Role* role, const SessionKeys* keys) {
  Status greeted = co_await exchange_hello(*session);
  if (!greeted.ok()) {
    co_await refuse(*session, greeted);
    co_return;
  }
  Result<wire::Setup> setup =
      co_await answer_setup(*session, settings_.streams_max, runtime_.engine_name());
  if (!setup.ok()) {
    co_await refuse(*session, setup.status());
    co_return;
  }
  const std::unique_ptr<DataConnections> connections = decorated(
      settings_.decorate, *session,
      std::make_unique<IncomingConnections>(*session, *keys, listener_, kConnectPatience));
  const bool sends = setup->initiator == wire::Role::kReceiver;
  if (sends && setup->selection.lists_paths) {
    Status taken = co_await take_listed_paths(*session);
    if (!taken.ok()) {
      co_await refuse(*session, taken);
      co_return;
    }
  }
  if (sends) {
    co_await run_sender(session, role, setup->sources, connections.get());
  } else {
    co_await run_receiver(session, role, setup->target, make_session_name(session->environment()),
                          connections.get());
  }
}

}  // namespace fgsync::transfer
