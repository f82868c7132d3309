// The kernel's own sockets.
#pragma once

#include "io/network.h"

namespace fgsync::io {

// Stateless and thread-safe. Sockets are made in blocking mode and close-on-exec. Buffer sizes are
// never set: that would switch the kernel's own tuning of them off (tcp(7)).
class PosixNetwork final : public Network {
 public:
  Result<Socket> listen(const SocketAddress& address) override;
  Result<Socket> create(const SocketAddress& peer,
                        const std::optional<SocketAddress>& local) override;
  void prepare_accepted(const Socket& socket) override;
  Result<SocketAddress> local_address(const Socket& socket) override;
  Result<SocketAddress> peer_address(const Socket& socket) override;
  Result<SocketAddress> source_address_for(const SocketAddress& peer) override;
  Result<std::vector<InterfaceAddress>> interfaces() override;
  void shutdown(int descriptor) override;
  void close(int descriptor) override;
};

}  // namespace fgsync::io
