// The control connection: TLS 1.3 with an external pre-shared key (psk_dhe_ke, so with forward secrecy), nothing
// older, no certificates, no tickets, no renegotiation. Each message is 4 bytes of length (little-endian) and its
// bytes, inside TLS.
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

// Does the handshake. kUnauthenticated when the peer does not have the key, kTimeout at the deadline.
io::Task<Result<TlsControl>> establish_tls_control(io::Io& io, io::Socket socket, TlsRole role,
                                                   const PreSharedKey& key,
                                                   const SessionId& session, io::TimePoint deadline);

}  // namespace fgsync::transport
