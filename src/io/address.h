// Socket addresses: reading, printing, and which of them count as private.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "fgsync/status.h"

namespace fgsync::io {

// An IPv4 or IPv6 address with a port and, for link-local IPv6, a scope. A plain value.
class SocketAddress {
 public:
  SocketAddress() = default;
  // `text` is a literal: 10.0.0.1, fd00::1, fe80::1%ens6 (scope by name or index); no brackets, no
  // names.
  static Result<SocketAddress> parse(const std::string& text, std::uint16_t port);
  static SocketAddress from_system(const sockaddr* address, socklen_t length);

  bool is_ipv6() const { return storage_.ss_family == AF_INET6; }
  bool valid() const { return storage_.ss_family != AF_UNSPEC; }
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  bool is_loopback() const;
  bool is_wildcard() const;
  // RFC 1918, RFC 6598 (shared), RFC 4193 (unique local), link-local and loopback; IPv4-mapped IPv6
  // by its IPv4 part. Nothing else: a wildcard, multicast or global address is not private.
  bool is_private() const;
  // Without the port: "10.0.0.1", "fe80::1%ens6".
  std::string host_text() const;
  // With it: "10.0.0.1:8730", "[fd00::1]:8730".
  std::string text() const;
  bool same_host(const SocketAddress& other) const;

  const sockaddr* system() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t system_length() const;

 private:
  sockaddr_storage storage_{};
};

}  // namespace fgsync::io
