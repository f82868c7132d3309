#include "transfer/remote_shell_host.h"

#include <algorithm>

#include "io/standard_streams.h"
#include "transport/address_policy.h"

namespace fgsync::transfer {

io::Task<Result<FarAddress>> RemoteShellHost::start(std::chrono::milliseconds patience) {
  Result<FarAddress> address = Status(ErrorCode::kRemoteShellFailed, "not started");
  co_await io::run_blocking(runtime_.control(), [&] { address = start_now(patience); });
  co_return address;
}

Result<FarAddress> RemoteShellHost::start_now(std::chrono::milliseconds patience) {
  wire::StartRequest request;
  request.version_min = wire::kVersionMin;
  request.version_max = wire::kVersionMax;
  request.io_engine = options_.io_engine;
  request.streams = streams_;
  request.ports = options_.ports;
  request.allow_public = options_.allow_public;
  request.family = options_.family;
  std::optional<io::SocketAddress> local;
  if (!options_.bind.empty()) {
    auto bound = transport::resolve_bind(runtime_.environment().network(), options_.bind,
                                         options_.family, options_.allow_public);
    if (!bound.ok()) return bound.status();
    local = *bound;
    request.facing = local->host_text();
  }
  // A person may be asked for a password, and takes longer than a host: at the start, when somebody
  // sits there.
  const bool may_be_asked = !started_before_ && io::has_terminal();
  if (may_be_asked) patience = std::max(patience, options_.timeout);
  auto far_side =
      FarSide::start(options_, location_, request, patience, runtime_.environment(), cancel_);
  if (!far_side.ok()) return far_side.status();
  far_side_ = std::move(*far_side);
  started_before_ = true;
  return choose_addresses(local);
}

// Both ends of every connection are pinned to one private address each.
Result<FarAddress> RemoteShellHost::choose_addresses(std::optional<io::SocketAddress> local) const {
  const wire::StartAnswer& answer = far_side_->answer();
  auto peer = io::SocketAddress::parse(answer.address, answer.port);
  // An address that the user gave is better than the far side's own idea of it: it carries this
  // host's scope, and it is the one that is known to be reachable.
  if (answer.choice == wire::AddressChoice::kReached) {
    auto given = io::SocketAddress::parse(location_.host, answer.port);
    if (given.ok()) peer = given;
  }
  if (!peer.ok()) return peer.status();
  FarAddress address;
  address.peer = *peer;
  address.local = local;
  address.key = answer.psk;
  address.session = answer.session_id;
  if (answer.choice == wire::AddressChoice::kLoopback) {
    address.advice =
        "the remote shell set no SSH_CONNECTION (sudo drops it), so the far side listened on "
        "loopback; --bind=ADDR of this host chooses the network";
  }
  FGSYNC_RETURN_IF_ERROR(transport::check_address(address.peer, options_.allow_public));
  if (local) return address;
  auto source = runtime_.environment().network().source_address_for(address.peer);
  if (!source.ok()) return source.status();
  FGSYNC_RETURN_IF_ERROR(transport::check_address(*source, options_.allow_public));
  source->set_port(0);
  address.local = *source;
  return address;
}

io::Task<void> RemoteShellHost::finish(bool succeeded) {
  co_await io::run_blocking(runtime_.control(), [&] {
    if (far_side_) far_side_->finish(succeeded);
    far_side_.reset();
  });
}

void RemoteShellHost::drain() {
  if (far_side_) far_side_->drain();
}

}  // namespace fgsync::transfer
