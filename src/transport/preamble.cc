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
constexpr std::size_t kGenerationOffset = 12;
constexpr std::size_t kSessionOffset = 16;

template <typename Number>
void put(PreambleBytes& bytes, std::size_t offset, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i) bytes[offset + i] = std::byte(value >> (8 * i));
}

template <typename Number>
Number get(const PreambleBytes& bytes, std::size_t offset) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value = Number(value | Number(std::to_integer<Number>(bytes[offset + i]) << (8 * i)));
  }
  return value;
}

PreambleBytes make(std::string_view magic, std::uint16_t stream, std::uint32_t generation,
                   const SessionId& session) {
  PreambleBytes bytes{};
  std::memcpy(bytes.data(), magic.data(), magic.size());
  put(bytes, kVersionOffset, kVersion);
  put(bytes, kStreamOffset, stream);
  put(bytes, kGenerationOffset, generation);
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

PreambleBytes control_preamble(const SessionId& session) {
  return make(kControlMagic, 0, 0, session);
}

PreambleBytes data_preamble(const SessionId& session, std::uint16_t stream,
                            std::uint32_t generation, const SessionSecret& secret) {
  PreambleBytes bytes = make(kDataMagic, stream, generation, session);
  const Mac mac = secret.join_mac(covered_by_mac(bytes), Direction::kFromInitiator);
  std::copy(mac.begin(), mac.end(), bytes.begin() + kPreambleMacOffset);
  return bytes;
}

std::optional<Preamble> parse_preamble(const PreambleBytes& bytes) {
  Preamble result;
  result.is_control = has_magic(bytes, kControlMagic);
  if (!result.is_control && !has_magic(bytes, kDataMagic)) return std::nullopt;
  if (get<std::uint16_t>(bytes, kVersionOffset) != kVersion) return std::nullopt;
  result.stream = get<std::uint16_t>(bytes, kStreamOffset);
  result.generation = get<std::uint32_t>(bytes, kGenerationOffset);
  std::copy_n(bytes.begin() + kSessionOffset, result.session.size(), result.session.begin());
  std::copy_n(bytes.begin() + kPreambleMacOffset, result.mac.size(), result.mac.begin());
  const bool names_a_stream = result.stream != 0 || result.generation != 0 || !is_zero(result.mac);
  if (result.is_control && names_a_stream) return std::nullopt;
  return result;
}

}  // namespace fgsync::transport
