// The first bytes of every connection: 8 bytes of magic ("fgsync-c" control, "fgsync-d" data),
// version (2, little-endian), stream (2), generation (4), session id (16), MAC (32); for control
// stream, generation and MAC are zero.
// The MAC covers the 32 bytes before it, and so does the acceptor's answer to a data connection,
// its own MAC alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "transport/connection.h"
#include "transport/session_secret.h"

namespace fgsync::transport {

using PreambleBytes = std::array<std::byte, kPreambleBytes>;
inline constexpr std::size_t kPreambleMacOffset = 32;
static_assert(kPreambleMacOffset + std::tuple_size_v<Mac> == kPreambleBytes);

PreambleBytes control_preamble(const SessionId& session);
PreambleBytes data_preamble(const SessionId& session, std::uint16_t stream,
                            std::uint32_t generation, const SessionSecret& secret);

// What the MACs cover.
inline std::span<const std::byte> covered_by_mac(const PreambleBytes& bytes) {
  return std::span(bytes).first(kPreambleMacOffset);
}

struct Preamble {
  bool is_control = false;
  std::uint16_t stream = 0;
  std::uint32_t generation = 0;
  SessionId session{};
  Mac mac{};
};
// nullopt for anything that is not a preamble of this version. Nothing of it is proven yet.
std::optional<Preamble> parse_preamble(const PreambleBytes& bytes);

}  // namespace fgsync::transport
