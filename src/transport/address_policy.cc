#include "transport/address_policy.h"

#include <algorithm>

namespace fgsync::transport {
namespace {

bool has_family(const io::SocketAddress& address, AddressFamily family) {
  return family == AddressFamily::kAny || address.is_ipv6() == (family == AddressFamily::kIpv6);
}

const char* family_text(AddressFamily family) {
  switch (family) {
    case AddressFamily::kIpv4:
      return "an IPv4 address";
    case AddressFamily::kIpv6:
      return "an IPv6 address";
    case AddressFamily::kAny:
      break;
  }
  return "an address";
}

Status cannot_bind(const std::string& bind, const std::string& why) {
  return Status(ErrorCode::kInvalidArgument, "--bind=" + bind + ": " + why);
}

// An address as typed: it has to be one of this host's. All of 127.0.0.0/8 is, though only one is
// listed.
Result<io::SocketAddress> resolve_literal(const io::SocketAddress& address,
                                          const std::vector<io::InterfaceAddress>& ours,
                                          const std::string& bind, AddressFamily family,
                                          bool allow_public) {
  if (!has_family(address, family))
    return cannot_bind(bind, std::string("is not ") + family_text(family));
  FGSYNC_RETURN_IF_ERROR(check_address(address, allow_public));
  const bool is_ours = std::any_of(ours.begin(), ours.end(), [&](const io::InterfaceAddress& own) {
    return own.address.same_host(address);
  });
  if (!is_ours && !address.is_loopback()) {
    return cannot_bind(bind, "is not an address of this host");
  }
  return address;
}

Result<io::SocketAddress> resolve_interface(const std::vector<io::InterfaceAddress>& ours,
                                            const std::string& bind, AddressFamily family,
                                            bool allow_public) {
  bool known = false;
  std::optional<io::SocketAddress> chosen;
  for (const io::InterfaceAddress& own : ours) {
    if (own.interface != bind) continue;
    known = true;
    if (!has_family(own.address, family)) continue;
    if (!chosen || (!chosen->is_private() && own.address.is_private())) chosen = own.address;
  }
  if (!known) {
    return cannot_bind(bind, "is neither an address nor an interface that is up on this host");
  }
  if (!chosen)
    return cannot_bind(bind, std::string("the interface does not have ") + family_text(family));
  FGSYNC_RETURN_IF_ERROR(check_address(*chosen, allow_public));
  return *chosen;
}

}  // namespace

Status check_address(const io::SocketAddress& address, bool allow_public) {
  if (address.is_wildcard()) {
    return Status(ErrorCode::kRefused,
                  address.host_text() + " means every address of the host; name one of them");
  }
  if (address.is_private() || allow_public) return Status();
  return Status(ErrorCode::kRefused,
                address.host_text() + " is not a private address; --allow-public permits it");
}

Result<io::SocketAddress> resolve_bind(io::Network& network, const std::string& bind,
                                       AddressFamily family, bool allow_public) {
  Result<std::vector<io::InterfaceAddress>> ours = network.interfaces();
  FGSYNC_RETURN_IF_ERROR(ours.status());
  Result<io::SocketAddress> literal = io::SocketAddress::parse(bind, 0);
  Result<io::SocketAddress> resolved =
      literal.ok() ? resolve_literal(*literal, *ours, bind, family, allow_public)
                   : resolve_interface(*ours, bind, family, allow_public);
  if (resolved.ok()) resolved->set_port(0);
  return resolved;
}

}  // namespace fgsync::transport
