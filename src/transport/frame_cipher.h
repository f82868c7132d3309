// Seals and opens frames of one stream in one direction: AEAD, the frame's prefix and header as
// associated data, a counter as nonce (so frames can't be replayed, dropped or reordered
// unnoticed), and a fresh key after a bounded number of bytes. Payloads are worked on in place and
// in pieces, so that each piece is still in the cache when it is sent or after it came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "fgsync/status.h"
#include "transport/session_secret.h"

namespace fgsync::transport {

inline constexpr std::size_t kTagBytes = 16;
// RFC 8446 section 5.5 allows 2^24.5 full records (362 GiB) under one AES-GCM key; we stay well
// below.
inline constexpr std::uint64_t kBytesPerKey = std::uint64_t{64} << 30;

// Not thread-safe: one stream's one direction, on its worker.
class FrameCipher {
 public:
  // `cipher` is a real one, not kAuto or kNone; `generation` is the connection's among those of its
  // stream, and never comes twice. `bytes_per_key` is for tests.
  static Result<std::unique_ptr<FrameCipher>> create(Cipher cipher, const SessionSecret& secret,
                                                     std::uint16_t stream, Direction direction,
                                                     std::uint32_t generation,
                                                     std::uint64_t bytes_per_key = kBytesPerKey);
  virtual ~FrameCipher() = default;

  // One frame: begin, then pieces of its payload in order, then its tag. Sealing and opening are
  // not mixed on one object.
  virtual Status begin_seal(std::span<const std::byte> associated) = 0;
  virtual Status seal(std::span<std::byte> piece) = 0;
  virtual Status finish_seal(std::span<std::byte, kTagBytes> tag) = 0;

  virtual Status begin_open(std::span<const std::byte> associated) = 0;
  virtual Status open(std::span<std::byte> piece) = 0;
  // kProtocolError if the frame does not authenticate: nothing of it may be used.
  virtual Status finish_open(std::span<const std::byte, kTagBytes> tag) = 0;
};

}  // namespace fgsync::transport
