// The socket half of the I/O seam, as far as it does not block: making, binding, asking, closing.
// What can take time (accept, connect, receive, send) is an Operation of io.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fgsync/status.h"
#include "io/address.h"

namespace fgsync::io {

class Network;

// An open socket: move-only; closed when it goes away. `shutdown` may be called from any thread
// while operations are in flight and makes them all return; the owner closes it only after they
// have.
class Socket {
 public:
  Socket() = default;
  Socket(Network* network, int descriptor) : network_(network), descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept
      : network_(std::exchange(other.network_, nullptr)),
        descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      reset();
      network_ = std::exchange(other.network_, nullptr);
      descriptor_ = std::exchange(other.descriptor_, -1);
    }
    return *this;
  }
  ~Socket() { reset(); }
  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  inline void shutdown() const;
  inline void reset();

 private:
  Network* network_ = nullptr;
  int descriptor_ = -1;
};

struct InterfaceAddress {
  std::string interface;
  SocketAddress address;
};

class Network {
 public:
  virtual ~Network() = default;
  // A listening socket bound to exactly this address; port 0 lets the kernel choose.
  virtual Result<Socket> listen(const SocketAddress& address) = 0;
  // A socket ready for kConnect to `peer`, bound to `local` (port 0) if given. Keep-alive,
  // TCP_NODELAY and TCP_USER_TIMEOUT are set on it, as they are on accepted ones by
  // `prepare_accepted`.
  virtual Result<Socket> create(const SocketAddress& peer,
                                const std::optional<SocketAddress>& local) = 0;
  virtual void prepare_accepted(const Socket& socket) = 0;
  virtual Result<SocketAddress> local_address(const Socket& socket) = 0;
  virtual Result<SocketAddress> peer_address(const Socket& socket) = 0;
  // The address that this host would use to reach `peer`, by its routing table; nothing is sent.
  virtual Result<SocketAddress> source_address_for(const SocketAddress& peer) = 0;
  // Addresses of the interfaces that are up.
  virtual Result<std::vector<InterfaceAddress>> interfaces() = 0;

  virtual void shutdown(int descriptor) = 0;
  virtual void close(int descriptor) = 0;
};

inline void Socket::shutdown() const {
  if (descriptor_ >= 0) network_->shutdown(descriptor_);
}
inline void Socket::reset() {
  if (descriptor_ >= 0) network_->close(std::exchange(descriptor_, -1));
}

}  // namespace fgsync::io
