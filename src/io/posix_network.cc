#include "io/posix_network.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace fgsync::io {
namespace {

// More connections than a session may have unproven at once; the kernel bounds it by
// net.core.somaxconn.
constexpr int kListenBacklog = 128;

// An idle peer that vanished is noticed after 15 + 9 * 5 = 60 s, one that stops acknowledging after
// 60 s. TCP_USER_TIMEOUT covers what keep-alive cannot: keep-alive is silent while bytes are in
// flight (tcp(7)).
constexpr int kKeepAliveIdleSeconds = 15;
constexpr int kKeepAliveIntervalSeconds = 5;
constexpr int kKeepAliveProbes = 9;
constexpr int kUserTimeoutMilliseconds = 60'000;

// Failure is ignored: each option only makes a working socket better, and a socketpair has none of
// TCP's.
void set_option(int descriptor, int level, int option, int value) {
  (void)::setsockopt(descriptor, level, option, &value, sizeof value);
}

void set_connection_options(int descriptor) {
  set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
  set_option(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMilliseconds);
}

Result<Socket> make_socket(Network* network, const SocketAddress& address, int type) {
  const int family = address.is_ipv6() ? AF_INET6 : AF_INET;
  const int descriptor = ::socket(family, type | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return Status::from_errno(errno, "making a socket");
  return Socket(network, descriptor);
}

Status bind_to(const Socket& socket, const SocketAddress& address) {
  if (::bind(socket.descriptor(), address.system(), address.system_length()) != 0) {
    return Status::from_errno(errno, "binding to " + address.text());
  }
  return Status();
}

using NameCall = int (*)(int, sockaddr*, socklen_t*);

Result<SocketAddress> address_by(NameCall call, const Socket& socket, const char* doing) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  if (call(socket.descriptor(), address, &length) != 0) return Status::from_errno(errno, doing);
  return SocketAddress::from_system(address, length);
}

}  // namespace

Result<Socket> PosixNetwork::listen(const SocketAddress& address) {
  Result<Socket> socket = make_socket(this, address, SOCK_STREAM);
  if (!socket.ok()) return socket;
  // Otherwise a fixed port stays taken for a minute after each session (TIME_WAIT).
  set_option(socket->descriptor(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.is_ipv6()) set_option(socket->descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  FGSYNC_RETURN_IF_ERROR(bind_to(*socket, address));
  if (::listen(socket->descriptor(), kListenBacklog) != 0) {
    return Status::from_errno(errno, "listening on " + address.text());
  }
  return socket;
}

Result<Socket> PosixNetwork::create(const SocketAddress& peer,
                                    const std::optional<SocketAddress>& local) {
  Result<Socket> socket = make_socket(this, peer, SOCK_STREAM);
  if (!socket.ok()) return socket;
  set_connection_options(socket->descriptor());
  if (local) {
    // The kernel then chooses the port at connect, by the whole connection: many more of them fit
    // (ip(7)).
    set_option(socket->descriptor(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    SocketAddress any_port = *local;
    any_port.set_port(0);
    FGSYNC_RETURN_IF_ERROR(bind_to(*socket, any_port));
  }
  return socket;
}

void PosixNetwork::prepare_accepted(const Socket& socket) {
  set_connection_options(socket.descriptor());
}

Result<SocketAddress> PosixNetwork::local_address(const Socket& socket) {
  return address_by(&::getsockname, socket, "asking for a socket's own address");
}

Result<SocketAddress> PosixNetwork::peer_address(const Socket& socket) {
  return address_by(&::getpeername, socket, "asking for a socket's peer");
}

Result<SocketAddress> PosixNetwork::source_address_for(const SocketAddress& peer) {
  const Result<Socket> socket = make_socket(this, peer, SOCK_DGRAM);
  if (!socket.ok()) return socket.status();
  SocketAddress target = peer;
  if (target.port() == 0)
    target.set_port(9);  // any port: connecting a datagram socket sends nothing
  if (::connect(socket->descriptor(), target.system(), target.system_length()) != 0) {
    const int error = errno;
    return Status(ErrorCode::kConnectionFailed,
                  Status::from_errno(error, "finding a route to " + peer.host_text()).message(),
                  error);
  }
  Result<SocketAddress> source = local_address(*socket);
  if (source.ok()) source->set_port(0);
  return source;
}

Result<std::vector<InterfaceAddress>> PosixNetwork::interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return Status::from_errno(errno, "listing network interfaces");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(list, &::freeifaddrs);
  std::vector<InterfaceAddress> result;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    result.push_back({entry->ifa_name, SocketAddress::from_system(entry->ifa_addr, length)});
  }
  return result;
}

void PosixNetwork::shutdown(int descriptor) { (void)::shutdown(descriptor, SHUT_RDWR); }

void PosixNetwork::close(int descriptor) { (void)::close(descriptor); }

}  // namespace fgsync::io
