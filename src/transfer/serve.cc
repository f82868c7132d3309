// The far side of a run over a remote shell.
#include <algorithm>

#include "base/limits.h"
#include "fgsync/transfer.h"
#include "io/pause.h"
#include "io/runtime.h"
#include "io/standard_streams.h"
#include "transfer/data_connections.h"
#include "transfer/resources.h"
#include "transfer/roles.h"
#include "transfer/watchdog.h"
#include "transport/address_policy.h"
#include "transport/connection.h"
#include "wire/start_line.h"

namespace fgsync {
namespace {

using namespace transfer;  // NOLINT: this file is the top of the layer

constexpr std::size_t kRequestBytesMax = 4096;
constexpr std::chrono::seconds kRequestPatience{30};
// From the announcement to an authenticated control connection, and from there to all data
// connections.
constexpr std::chrono::seconds kConnectPatience{60};
constexpr std::chrono::milliseconds kLook{100};

struct ListenAddress {
  io::SocketAddress address;
  wire::AddressChoice choice = wire::AddressChoice::kReached;
};

// The one address of this host to listen on: what faces the starter's own, else that on which ssh
// reached this host, else loopback.
Result<ListenAddress> choose_listen_address(io::Network& network,
                                            const wire::StartRequest& request) {
  ListenAddress chosen;
  const std::string reached = io::address_reached_by_ssh();
  if (!request.facing.empty()) {
    auto facing = io::SocketAddress::parse(request.facing, 1);
    if (!facing.ok()) return facing.status();
    auto source = network.source_address_for(*facing);
    if (!source.ok()) return source.status();
    chosen = {*source, wire::AddressChoice::kFacing};
  } else {
    const bool ipv6 = request.family == AddressFamily::kIpv6;
    const std::string loopback = ipv6 ? "::1" : "127.0.0.1";
    auto address = io::SocketAddress::parse(reached.empty() ? loopback : reached, 0);
    if (!address.ok()) return address.status();
    chosen = {*address,
              reached.empty() ? wire::AddressChoice::kLoopback : wire::AddressChoice::kReached};
  }
  FGSYNC_RETURN_IF_ERROR(transport::check_address(chosen.address, request.allow_public));
  return chosen;
}

// The first free port of the range.
Result<io::Socket> listen_in_range(io::Network& network, io::SocketAddress address,
                                   const PortRange& ports) {
  for (std::uint32_t port = ports.low;; ++port) {
    address.set_port(std::uint16_t(port));
    auto listener = network.listen(address);
    if (listener.ok() || port >= ports.high) return listener;
  }
}

// The session that this process was started for.
class FarSession {
 public:
  FarSession(io::Runtime& runtime, std::uint16_t streams_max, CancelToken& cancel)
      : runtime_(runtime), streams_max_(streams_max), cancel_(cancel) {}

  // Listens and prints how to be reached.
  Status announce(const wire::StartRequest& request);
  io::Task<void> run();
  const Status& status() const { return status_; }

 private:
  io::Task<void> watch_starter(io::Pause* pause);
  io::Task<void> serve_control(transport::TlsControl control);
  io::Task<void> take_role(Session* session, Role* role, const SessionKeys* keys);

  io::Runtime& runtime_;
  const std::uint16_t streams_max_;
  CancelToken& cancel_;
  wire::StartAnswer answer_;
  std::unique_ptr<transport::SessionListener> listener_;
  Status status_;
};

Status FarSession::announce(const wire::StartRequest& request) {
  io::Network& network = runtime_.environment().network();
  auto chosen = choose_listen_address(network, request);
  if (!chosen.ok()) return chosen.status();
  auto socket = listen_in_range(network, chosen->address, request.ports);
  if (!socket.ok()) return Status(ErrorCode::kConnectionFailed, socket.status().message());
  auto bound = network.local_address(*socket);
  if (!bound.ok()) return bound.status();
  answer_.address = bound->host_text();
  answer_.port = bound->port();
  answer_.choice = chosen->choice;
  runtime_.environment().random_bytes(answer_.psk);
  runtime_.environment().random_bytes(answer_.session_id);
  listener_ = std::make_unique<transport::SessionListener>(runtime_.control(), std::move(*socket),
                                                           answer_.psk, answer_.session_id);
  return io::write_standard_output(wire::encode(answer_));
}

io::Task<void> FarSession::run() {
  io::Io& io = runtime_.control();
  io::Pause pause(io);
  io::TaskGroup watching;
  watching.spawn(io, watch_starter(&pause));
  auto control =
      co_await listener_->accept_control(runtime_.environment().now() + kConnectPatience);
  pause.end();
  co_await watching.join(io);
  if (control.ok()) {
    co_await serve_control(std::move(*control));
  } else {
    status_ = control.status();
  }
  co_await listener_->stop();
}

// Until the control connection stands: an end of the starter ends the waiting.
io::Task<void> FarSession::watch_starter(io::Pause* pause) {
  while (true) {
    const bool on = co_await pause->sleep_for(kLook);
    if (!on) co_return;
    if (cancel_.requested() || io::is_standard_input_closed()) {
      co_await listener_->stop();
      co_return;
    }
  }
}

io::Task<void> FarSession::serve_control(transport::TlsControl control) {
  io::Io& io = runtime_.control();
  const SessionKeys keys{control.secret, answer_.session_id};
  Session session(runtime_, std::move(control.stream), "the starting side", cancel_);
  session.on_failure([this] { listener_->end_waiting(); });
  Role role;
  Watchdog watch(
      session,
      [] {
        if (!io::is_standard_input_closed()) return Status();
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
  Result<wire::Setup> setup = co_await answer_setup(*session, streams_max_, runtime_.engine_name());
  if (!setup.ok()) {
    co_await refuse(*session, setup.status());
    co_return;
  }
  OpenStreams open_streams = [this, session, keys] {
    return accept_streams(*session, *keys, *listener_,
                          session->environment().now() + kConnectPatience);
  };
  if (setup->initiator == wire::Role::kReceiver) {
    co_await run_sender(session, role, setup->sources, open_streams);
  } else {
    co_await run_receiver(session, role, setup->target, make_session_name(session->environment()),
                          open_streams);
  }
}

// Tells the starter, in the place where it looks for the answer, why there is none.
int refuse_start(const Status& status) {
  const int exit_code = exit_status_of(status.code());
  (void)io::write_standard_output(wire::encode(wire::StartRefusal{exit_code, status.message()}));
  return exit_code;
}

}  // namespace

int serve(CancelToken& cancel) {
  auto line = io::read_standard_input_line(kRequestBytesMax, kRequestPatience);
  if (!line.ok()) return refuse_start(line.status());
  auto request = wire::decode_start_request(*line);
  if (!request.ok()) return refuse_start(request.status());
  if (request->version_min > wire::kVersionMax || request->version_max < wire::kVersionMin) {
    return refuse_start(Status(ErrorCode::kVersionMismatch,
                               std::string("fgsync ") + version_string() +
                                   " here speaks no protocol version of the starting side"));
  }

  const std::size_t cores = io::usable_cores();
  const std::size_t descriptors = io::raise_descriptor_limit();
  const std::uint16_t streams = std::min(request->streams, affordable_streams(descriptors));
  if (streams == 0) return refuse_start(too_few_descriptors(descriptors));
  auto runtime = io::create_runtime(runtime_options(request->io_engine, streams, cores));
  if (!runtime.ok()) return refuse_start(runtime.status());
  FarSession far_session(**runtime, streams, cancel);
  Status announced = far_session.announce(*request);
  if (!announced.ok()) return refuse_start(announced);
  (*runtime)->run(far_session.run());
  return exit_status_of(far_session.status().code());
}

}  // namespace fgsync
