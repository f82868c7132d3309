#include "transport/preamble.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace fgsync::transport {
namespace {

constexpr std::string_view kControlMagic = "fgsync-c";
constexpr std::string_view kDataMagic = "fgsync-d";
constexpr std::uint16_t kVersion = 1;

constexpr std::size_t kVersionOffset = 8;
constexpr std::size_t kStreamOffset = 10;
constexpr std::size_t kZeroOffset = 12;
constexpr std::size_t kSessionOffset = 16;

void put_u16(PreambleBytes& bytes, std::size_t offset, std::uint16_t value) {
  bytes[offset] = std::byte(value & 0xff);
  bytes[offset + 1] = std::byte(value >> 8);
}

std::uint16_t get_u16(const PreambleBytes& bytes, std::size_t offset) {
  return std::uint16_t(std::to_integer<unsigned>(bytes[offset]) |
                       std::to_integer<unsigned>(bytes[offset + 1]) << 8);
}

PreambleBytes make(std::string_view magic, std::uint16_t stream, const SessionId& session) {
  PreambleBytes bytes{};
  std::memcpy(bytes.data(), magic.data(), magic.size());
  put_u16(bytes, kVersionOffset, kVersion);
  put_u16(bytes, kStreamOffset, stream);
  std::copy(session.begin(), session.end(), bytes.begin() + kSessionOffset);
  return bytes;
}

bool has_magic(const PreambleBytes& bytes, std::string_view magic) {
  return std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

PreambleBytes control_preamble(const SessionId& session) { return make(kControlMagic, 0, session); }

PreambleBytes data_preamble(const SessionId& session, std::uint16_t stream,
                            const SessionSecret& secret) {
  PreambleBytes bytes = make(kDataMagic, stream, session);
  const Mac mac = secret.join_mac(covered_by_mac(bytes), Direction::kFromInitiator);
  std::copy(mac.begin(), mac.end(), bytes.begin() + kPreambleMacOffset);
  return bytes;
}

std::optional<Preamble> parse_preamble(const PreambleBytes& bytes) {
  Preamble result;
  result.is_control = has_magic(bytes, kControlMagic);
  if (!result.is_control && !has_magic(bytes, kDataMagic)) return std::nullopt;
  if (get_u16(bytes, kVersionOffset) != kVersion) return std::nullopt;
  if (!is_zero(std::span(bytes).subspan(kZeroOffset, kSessionOffset - kZeroOffset))) {
    return std::nullopt;
  }
  result.stream = get_u16(bytes, kStreamOffset);
  std::copy_n(bytes.begin() + kSessionOffset, result.session.size(), result.session.begin());
  std::copy_n(bytes.begin() + kPreambleMacOffset, result.mac.size(), result.mac.begin());
  if (result.is_control && (result.stream != 0 || !is_zero(result.mac))) return std::nullopt;
  return result;
}

}  // namespace fgsync::transport
