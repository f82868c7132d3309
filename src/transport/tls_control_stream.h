// The control connection: TLS 1.3 with an external pre-shared key (psk_dhe_ke, so with forward
// secrecy), nothing older, no certificates, no tickets, no renegotiation. Each message is 4 bytes
// of length (little-endian) and its bytes, inside TLS. Nothing ends the connection inside TLS
// (close_notify): a peer that goes away before the protocol's last message is kConnectionLost
// however it goes.
#pragma once

#include <memory>

#include "io/io.h"
#include "transport/session_secret.h"
#include "transport/stream.h"

namespace fgsync::transport {

enum class TlsRole : std::uint8_t { kInitiator, kAcceptor };  // TLS client, TLS server

struct TlsControl {
  std::unique_ptr<ControlStream> stream;
  SessionSecret secret;
};

// Records sent under one key before a key update (RFC 8446 section 4.6.3): well under the 2^24.5
// full ones that section 5.5 allows for AES-GCM.
inline constexpr std::uint64_t kTlsRecordsPerKey = std::uint64_t{1} << 22;

// Does the handshake. kUnauthenticated when the peer does not have the key, kTimeout at the
// deadline. Afterwards a send fails with kInvalidArgument for a message over the bound, and a
// receive with kProtocolError. `key` and `session` must stay until it returns; `records_per_key` is
// for tests.
io::Task<Result<TlsControl>> establish_tls_control(
    io::Io& io, io::Socket socket, TlsRole role, const PreSharedKey& key, const SessionId& session,
    io::TimePoint deadline, std::uint64_t records_per_key = kTlsRecordsPerKey);

}  // namespace fgsync::transport
