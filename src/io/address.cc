#include "io/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "base/assert.h"

namespace fgsync::io {
namespace {

sockaddr_in ipv4_of(const sockaddr* address) {
  sockaddr_in result;
  std::memcpy(&result, address, sizeof result);
  return result;
}

sockaddr_in6 ipv6_of(const sockaddr* address) {
  sockaddr_in6 result;
  std::memcpy(&result, address, sizeof result);
  return result;
}

// The IPv4 address, in host order, of an IPv4 or an IPv4-mapped IPv6 address (RFC 4291
// section 2.5.5.2).
std::optional<std::uint32_t> ipv4_bits(const SocketAddress& address) {
  if (!address.valid()) return std::nullopt;
  if (!address.is_ipv6()) return ntohl(ipv4_of(address.system()).sin_addr.s_addr);
  const sockaddr_in6 ipv6 = ipv6_of(address.system());
  if (!IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr)) return std::nullopt;
  std::uint32_t bits = 0;
  std::memcpy(&bits, ipv6.sin6_addr.s6_addr + 12, sizeof bits);
  return ntohl(bits);
}

struct Ipv4Range {
  std::uint32_t first;
  int prefix;
};

constexpr Ipv4Range kPrivateIpv4[] = {
    {0x0A000000, 8},   // 10.0.0.0/8, RFC 1918
    {0xAC100000, 12},  // 172.16.0.0/12, RFC 1918
    {0xC0A80000, 16},  // 192.168.0.0/16, RFC 1918
    {0x64400000, 10},  // 100.64.0.0/10, RFC 6598
    {0xA9FE0000, 16},  // 169.254.0.0/16, RFC 3927
    {0x7F000000, 8},   // 127.0.0.0/8, RFC 1122
};

bool is_private_ipv4(std::uint32_t bits) {
  for (const Ipv4Range& range : kPrivateIpv4) {
    if (((bits ^ range.first) >> (32 - range.prefix)) == 0) return true;
  }
  return false;
}

Result<std::uint32_t> parse_scope(const std::string& scope) {
  std::uint32_t index = ::if_nametoindex(scope.c_str());
  if (index != 0) return index;
  const char* const end = scope.data() + scope.size();
  const auto [stop, error] = std::from_chars(scope.data(), end, index);
  if (error != std::errc() || stop != end || index == 0) {
    return Status(ErrorCode::kInvalidArgument, "no such interface: " + scope);
  }
  return index;
}

}  // namespace

Result<SocketAddress> SocketAddress::parse(const std::string& text, std::uint16_t port) {
  SocketAddress address;
  sockaddr_in ipv4{};
  if (::inet_pton(AF_INET, text.c_str(), &ipv4.sin_addr) == 1) {
    ipv4.sin_family = AF_INET;
    ipv4.sin_port = htons(port);
    std::memcpy(&address.storage_, &ipv4, sizeof ipv4);
    return address;
  }
  const std::size_t percent = text.find('%');
  sockaddr_in6 ipv6{};
  if (::inet_pton(AF_INET6, text.substr(0, percent).c_str(), &ipv6.sin6_addr) != 1) {
    return Status(ErrorCode::kInvalidArgument, "not an IP address: " + text);
  }
  if (percent != std::string::npos) {
    const Result<std::uint32_t> scope = parse_scope(text.substr(percent + 1));
    if (!scope.ok()) return scope.status();
    ipv6.sin6_scope_id = *scope;
  }
  ipv6.sin6_family = AF_INET6;
  ipv6.sin6_port = htons(port);
  std::memcpy(&address.storage_, &ipv6, sizeof ipv6);
  return address;
}

SocketAddress SocketAddress::from_system(const sockaddr* address, socklen_t length) {
  SocketAddress result;
  if (address == nullptr || length < sizeof(sa_family_t)) return result;
  if (address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    std::memcpy(&result.storage_, address, sizeof(sockaddr_in));
  } else if (address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    std::memcpy(&result.storage_, address, sizeof(sockaddr_in6));
  }
  return result;
}

// sin_port and sin6_port lie at the same place (RFC 3493), but each is reached by its own name.
std::uint16_t SocketAddress::port() const {
  if (!valid()) return 0;
  return ntohs(is_ipv6() ? ipv6_of(system()).sin6_port : ipv4_of(system()).sin_port);
}

void SocketAddress::set_port(std::uint16_t port) {
  FGSYNC_ASSERT(valid());
  if (is_ipv6()) {
    sockaddr_in6 ipv6 = ipv6_of(system());
    ipv6.sin6_port = htons(port);
    std::memcpy(&storage_, &ipv6, sizeof ipv6);
  } else {
    sockaddr_in ipv4 = ipv4_of(system());
    ipv4.sin_port = htons(port);
    std::memcpy(&storage_, &ipv4, sizeof ipv4);
  }
}

bool SocketAddress::is_loopback() const {
  if (const auto bits = ipv4_bits(*this)) return *bits >> 24 == 127;
  if (!is_ipv6()) return false;
  const sockaddr_in6 ipv6 = ipv6_of(system());
  return IN6_IS_ADDR_LOOPBACK(&ipv6.sin6_addr);
}

bool SocketAddress::is_wildcard() const {
  if (const auto bits = ipv4_bits(*this)) return *bits == 0;
  if (!is_ipv6()) return false;
  const sockaddr_in6 ipv6 = ipv6_of(system());
  return IN6_IS_ADDR_UNSPECIFIED(&ipv6.sin6_addr);
}

bool SocketAddress::is_private() const {
  if (const auto bits = ipv4_bits(*this)) return is_private_ipv4(*bits);
  if (!is_ipv6()) return false;
  const sockaddr_in6 ipv6 = ipv6_of(system());
  const bool unique_local = (ipv6.sin6_addr.s6_addr[0] & 0xFE) == 0xFC;  // fc00::/7, RFC 4193
  return unique_local || IN6_IS_ADDR_LINKLOCAL(&ipv6.sin6_addr) ||
         IN6_IS_ADDR_LOOPBACK(&ipv6.sin6_addr);
}

std::string SocketAddress::host_text() const {
  if (!valid()) return "(no address)";
  char text[INET6_ADDRSTRLEN];
  if (!is_ipv6()) {
    const sockaddr_in ipv4 = ipv4_of(system());
    return ::inet_ntop(AF_INET, &ipv4.sin_addr, text, sizeof text);
  }
  const sockaddr_in6 ipv6 = ipv6_of(system());
  std::string host = ::inet_ntop(AF_INET6, &ipv6.sin6_addr, text, sizeof text);
  if (ipv6.sin6_scope_id == 0) return host;
  char name[IF_NAMESIZE];
  host += '%';
  host += ::if_indextoname(ipv6.sin6_scope_id, name) ? name : std::to_string(ipv6.sin6_scope_id);
  return host;
}

std::string SocketAddress::text() const {
  if (!valid()) return host_text();
  const std::string host = is_ipv6() ? "[" + host_text() + "]" : host_text();
  return host + ":" + std::to_string(port());
}

bool SocketAddress::same_host(const SocketAddress& other) const {
  if (!valid() || !other.valid()) return false;
  const auto bits = ipv4_bits(*this);
  const auto other_bits = ipv4_bits(other);
  if (bits || other_bits) return bits == other_bits;
  const sockaddr_in6 mine = ipv6_of(system());
  const sockaddr_in6 theirs = ipv6_of(other.system());
  return IN6_ARE_ADDR_EQUAL(&mine.sin6_addr, &theirs.sin6_addr) &&
         mine.sin6_scope_id == theirs.sin6_scope_id;
}

socklen_t SocketAddress::system_length() const {
  return is_ipv6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

}  // namespace fgsync::io
