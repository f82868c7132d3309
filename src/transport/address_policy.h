// Private by default: which addresses may be listened on and connected to.
#pragma once

#include <optional>
#include <string>

#include "fgsync/options.h"
#include "io/network.h"

namespace fgsync::transport {

// OK for a private address, and for a public one when allowed; kRefused naming the address and the
// option otherwise. A wildcard is refused always.
Status check_address(const io::SocketAddress& address, bool allow_public);

// --bind=ADDR or IFACE resolved to one address of this host: kInvalidArgument when it is neither,
// or has none of the family; the first private address of the interface is preferred. Checked by
// check_address.
Result<io::SocketAddress> resolve_bind(io::Network& network, const std::string& bind,
                                       AddressFamily family, bool allow_public);

}  // namespace fgsync::transport
