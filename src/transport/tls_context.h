// How TLS is set up for the control connection: TLS 1.3 alone, one external pre-shared key, nothing
// else that could authenticate anybody. No I/O: bytes go through memory BIOs.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "fgsync/status.h"
#include "transport/session_secret.h"
#include "transport/tls_control_stream.h"

namespace fgsync::transport {

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using SslPointer = std::unique_ptr<SSL, FreeSsl>;

// The key and the name it goes by, "fgsync/1 " and the session id in hexadecimal. Wiped at its end.
struct TlsIdentity {
  TlsIdentity(const PreSharedKey& pre_shared_key, const SessionId& session);
  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;
  ~TlsIdentity();

  PreSharedKey key;
  const std::string name;
};

// One connection's TLS with two memory BIOs (SSL_get_rbio: from the network, SSL_get_wbio: to it).
// `identity` must stay until the handshake is over.
Result<SslPointer> make_tls(TlsRole role, TlsIdentity& identity);

// After the handshake: OK if it was TLS 1.3 and the key is what authenticated it, else
// kUnauthenticated.
Status check_tls(const SSL* ssl);

// The secret of the session (RFC 8446 section 7.5), label "EXPORTER-fgsync-session".
Result<SessionSecret> export_session_secret(SSL* ssl);

}  // namespace fgsync::transport
