// The keys of a session. TLS 1.3 on the control connection authenticates both sides and agrees on
// one secret (exported, RFC 8446 section 7.5); everything the data connections use is derived from
// it with HKDF-Expand (RFC 5869) under labels that keep stream, direction, generation and key
// number apart, as QUIC and DTLS-SRTP do. A stream's generation counts its connections: one that
// replaces a lost one has keys of its own.
//
// The `info` of an expansion is: the label, a zero byte, stream (2 bytes, little-endian), direction
// (1), generation (4, little-endian), key number (4, little-endian). Labels: "fgsync frame key" (32
// bytes), "fgsync frame nonce" (12), "fgsync join key" (32; all numbers are 0).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fgsync/options.h"
#include "fgsync/status.h"

namespace fgsync::transport {

using SessionId = std::array<std::byte, 16>;
using PreSharedKey = std::array<std::byte, 32>;
using Mac = std::array<std::byte, 32>;

enum class Direction : std::uint8_t { kFromInitiator = 0, kToInitiator = 1 };

// 32 secret bytes, wiped when they go away.
class SessionSecret {
 public:
  explicit SessionSecret(std::span<const std::byte, 32> bytes);
  SessionSecret(const SessionSecret& other) = default;
  SessionSecret& operator=(const SessionSecret& other) = default;
  ~SessionSecret();

  // Key and nonce base for frames of one connection in one direction; `number` counts its keys.
  struct FrameKey {
    FrameKey() = default;
    FrameKey(const FrameKey& other) = default;
    FrameKey& operator=(const FrameKey& other) = default;
    ~FrameKey();                        // wipes it
    std::array<std::byte, 32> key{};    // the first 16 bytes for AES-128
    std::array<std::byte, 12> nonce{};  // the frame counter is XORed into its last 8 bytes
  };
  FrameKey frame_key(std::uint16_t stream, Direction direction, std::uint32_t generation,
                     std::uint32_t number) const;

  // MAC (HMAC-SHA-256) under the join key over a preamble: `from` says who makes it, so that
  // neither can be reflected.
  Mac join_mac(std::span<const std::byte> preamble, Direction from) const;

 private:
  std::array<std::byte, 32> bytes_;
};

// Compares in constant time.
bool equal_secret(std::span<const std::byte> a, std::span<const std::byte> b);
void wipe(std::span<std::byte> secret);

// The cipher for `asked` between two sides: kAuto becomes AES-128-GCM where both have AES, else
// ChaCha20-Poly1305.
Cipher choose_cipher(Cipher asked, bool ours_has_aes, bool theirs_has_aes);
const char* cipher_name(Cipher cipher);  // as on the command line

}  // namespace fgsync::transport
