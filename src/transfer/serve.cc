// The far side of a run over a remote shell.
#include <algorithm>

#include "base/limits.h"
#include "fgsync/transfer.h"
#include "io/runtime.h"
#include "io/standard_streams.h"
#include "transfer/far_session.h"
#include "transfer/resources.h"
#include "transport/address_policy.h"
#include "wire/start_line.h"

namespace fgsync {
namespace {

using namespace transfer;  // NOLINT: this file is the top of the layer

constexpr std::size_t kRequestBytesMax = 4096;
constexpr std::chrono::seconds kRequestPatience{30};

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

// A listener as asked for, and how to reach it.
struct Announced {
  io::Socket listener;
  wire::StartAnswer answer;
};

Result<Announced> announce(io::Environment& environment, const wire::StartRequest& request) {
  io::Network& network = environment.network();
  auto chosen = choose_listen_address(network, request);
  if (!chosen.ok()) return chosen.status();
  auto socket = listen_in_range(network, chosen->address, request.ports);
  if (!socket.ok()) return Status(ErrorCode::kConnectionFailed, socket.status().message());
  auto bound = network.local_address(*socket);
  if (!bound.ok()) return bound.status();
  Announced announced;
  announced.answer.address = bound->host_text();
  announced.answer.port = bound->port();
  announced.answer.choice = chosen->choice;
  environment.random_bytes(announced.answer.psk);
  environment.random_bytes(announced.answer.session_id);
  announced.listener = std::move(*socket);
  return announced;
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
  auto announced = announce((*runtime)->environment(), *request);
  if (!announced.ok()) return refuse_start(announced.status());
  FarSession far_session(
      **runtime, std::move(announced->listener), announced->answer.psk,
      announced->answer.session_id,
      {.streams_max = streams, .starter_is_gone = io::is_standard_input_closed, .decorate = {}},
      cancel);
  Status printed = io::write_standard_output(wire::encode(announced->answer));
  if (!printed.ok()) return refuse_start(printed);
  (*runtime)->run(far_session.run());
  return exit_status_of(far_session.status().code());
}

}  // namespace fgsync
