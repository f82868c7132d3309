// Locations as a user types them. The same text decides between a local path, a remote shell's
// argument and a mistake, so whatever could be two things is refused with the spelling that is only
// one.
#include <arpa/inet.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "fgsync/options.h"

namespace fgsync {
namespace {

constexpr std::string_view kDaemonScheme = "fgsync://";

Status mistake(const std::string& text, std::string_view why) {
  std::string message = text;
  message += ": ";
  message += why;
  return Status(ErrorCode::kInvalidArgument, std::move(message));
}

// An IPv6 address (RFC 4291, section 2.2), with a zone (RFC 4007, section 11) or without.
bool is_ipv6_literal(std::string_view text) {
  const std::size_t percent = text.find('%');
  if (percent != std::string_view::npos && percent + 1 == text.size()) return false;
  const std::string address(text.substr(0, percent));
  in6_addr parsed;
  return ::inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
}

// User and host become arguments of the remote shell. The characters refused are those that OpenSSH
// refuses itself, and a leading dash, which would make an option of them.
bool is_safe_word(std::string_view word, std::string_view refused) {
  if (word.empty() || word.front() == '-') return false;
  return std::all_of(word.begin(), word.end(), [refused](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > 0x20 && byte != 0x7f && refused.find(c) == std::string_view::npos;
  });
}

bool is_safe_user(std::string_view user) { return is_safe_word(user, "'`\";&<>|(){}[]"); }
bool is_safe_host(std::string_view host) { return is_safe_word(host, "'`\"$\\;&<>|(){}[],%@"); }

// Whether the part before some colon of `text` is an IPv6 address that lacks its brackets, or all
// of it is.
bool starts_with_bare_ipv6(std::string_view text) {
  if (is_ipv6_literal(text)) return true;
  for (std::size_t colon = text.find(':'); colon != std::string_view::npos;
       colon = text.find(':', colon + 1)) {
    if (is_ipv6_literal(text.substr(0, colon))) return true;
  }
  return false;
}

// `text` is [USER@][ADDRESS]:PATH; `bracket` is where the bracket stands.
Result<Location> parse_bracketed(const std::string& text, std::size_t bracket) {
  const std::size_t close = text.find(']', bracket);
  if (close == std::string::npos) {
    return mistake(text, "the bracket of the address is not closed; write [ADDRESS]:PATH");
  }
  Location location;
  location.host = text.substr(bracket + 1, close - bracket - 1);
  if (!is_ipv6_literal(location.host)) {
    return mistake(text,
                   "there is no IPv6 address in the brackets; a local path is written ./" + text);
  }
  const std::size_t percent = location.host.find('%');
  if (percent != std::string::npos && !is_safe_host(location.host.substr(percent + 1))) {
    return mistake(text, "the address's zone is not the name of an interface");
  }
  if (close + 1 == text.size() || text[close + 1] != ':') {
    return mistake(text, "a colon is missing after the address; write [ADDRESS]:PATH");
  }
  if (bracket > 0) location.user = text.substr(0, bracket - 1);
  location.path = text.substr(close + 2);
  return location;
}

Result<Location> parse_remote(const std::string& text, std::size_t colon, std::string_view head) {
  // The last @ ends the user, as for ssh: a user's name may hold one itself.
  const std::size_t at = text.substr(0, colon).rfind('@');
  const std::size_t host_start = at == std::string::npos ? 0 : at + 1;
  if (starts_with_bare_ipv6(head.substr(host_start))) {
    return mistake(
        text,
        "an IPv6 address stands in brackets, as in [::1]:PATH; a local path is written ./" + text);
  }
  Location location;
  if (host_start > 0) location.user = text.substr(0, at);
  location.host = text.substr(host_start, colon - host_start);
  location.path = text.substr(colon + 1);
  if (location.host.empty()) {
    return mistake(text, "there is no host before the colon; a local path is written ./" + text);
  }
  if (!is_safe_host(location.host)) {
    return mistake(text, "this cannot be the name of a host; a local path is written ./" + text);
  }
  if (location.path.starts_with(':')) {
    return mistake(
        text, "there is no HOST::MODULE; a path that starts with a colon is written HOST:./:PATH");
  }
  return location;
}

}  // namespace

Result<Location> parse_location(const std::string& text) {
  if (text.empty()) {
    return Status(ErrorCode::kInvalidArgument, "a location is empty; this directory is written .");
  }
  if (text.starts_with(kDaemonScheme)) {
    return Status(ErrorCode::kUnsupported, text + ": fgsync:// is not offered by this version");
  }
  const std::string_view head = std::string_view(text).substr(0, text.find('/'));
  const std::size_t colon = head.find(':');
  if (colon == std::string_view::npos) {
    Location local;
    local.path = text;
    return local;
  }
  const std::size_t bracket = head.find('[');
  const bool bracketed = bracket == 0 || (bracket != std::string_view::npos && bracket < colon &&
                                          head[bracket - 1] == '@');
  Result<Location> location =
      bracketed ? parse_bracketed(text, bracket) : parse_remote(text, colon, head);
  if (!location.ok()) return location;
  if (text.front() == '@' || (!location->user.empty() && !is_safe_user(location->user))) {
    return mistake(text, "this cannot be the name of a user; a local path is written ./" + text);
  }
  if (location->path.empty()) location->path.push_back('.');
  return location;
}

std::string Location::display() const {
  if (!is_remote()) {
    const std::string_view head = std::string_view(path).substr(0, path.find('/'));
    return head.find(':') == std::string_view::npos ? path : "./" + path;
  }
  std::string text;
  if (!user.empty()) text = user + "@";
  text += host.find(':') == std::string::npos ? host : "[" + host + "]";
  text += ":" + path;
  return text;
}

}  // namespace fgsync
