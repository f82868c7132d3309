#include "transport/tls_context.h"

#include <algorithm>

#include "transport/openssl_status.h"

namespace fgsync::transport {
namespace {

constexpr char kExporterLabel[] = "EXPORTER-fgsync-session";
// Both suites use SHA-256, which a TLS 1.3 key is bound to (RFC 8446 section 4.2.11).
constexpr char kCipherSuites[] = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
constexpr unsigned char kKeySuite[] = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256
constexpr char kGroups[] = "X25519:P-256";

struct FreeSslContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
struct FreeSslSession {
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
};
struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

std::string identity_name(const SessionId& session) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string name = "fgsync/1 ";
  for (const std::byte byte : session) {
    name += kDigits[std::to_integer<unsigned>(byte) >> 4];
    name += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return name;
}

// OpenSSL takes an external key in the shape of a session to resume; nullptr when memory is out.
SSL_SESSION* make_key_session(SSL* ssl, const TlsIdentity& identity) {
  std::unique_ptr<SSL_SESSION, FreeSslSession> session(SSL_SESSION_new());
  const SSL_CIPHER* suite = SSL_CIPHER_find(ssl, kKeySuite);
  const auto* key = reinterpret_cast<const unsigned char*>(identity.key.data());
  if (!session || !suite ||
      SSL_SESSION_set1_master_key(session.get(), key, identity.key.size()) != 1 ||
      SSL_SESSION_set_cipher(session.get(), suite) != 1 ||
      SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) != 1) {
    return nullptr;
  }
  return session.release();
}

// SSL_CTX_set_psk_use_session_callback(3). `digest` is given when the server has chosen the suite
// already.
int offer_key(SSL* ssl, const EVP_MD* digest, const unsigned char** name, std::size_t* name_bytes,
              SSL_SESSION** session) {
  *session = nullptr;
  if (digest && EVP_MD_get_type(digest) != NID_sha256) return 0;
  const auto* identity = static_cast<const TlsIdentity*>(SSL_get_app_data(ssl));
  *session = make_key_session(ssl, *identity);
  *name = reinterpret_cast<const unsigned char*>(identity->name.data());
  *name_bytes = identity->name.size();
  return *session ? 1 : 0;
}

// SSL_CTX_set_psk_find_session_callback(3). An unknown name is answered with no session: the
// handshake then goes on without a key, finds no certificate, and fails.
int find_key(SSL* ssl, const unsigned char* name, std::size_t name_bytes, SSL_SESSION** session) {
  *session = nullptr;
  const auto* identity = static_cast<const TlsIdentity*>(SSL_get_app_data(ssl));
  const std::string_view asked(reinterpret_cast<const char*>(name), name_bytes);
  if (asked != identity->name) return 1;
  *session = make_key_session(ssl, *identity);
  return *session ? 1 : 0;
}

bool configure(SSL_CTX* context, TlsRole role) {
  // Set outright, so that no system-wide configuration of OpenSSL has a say.
  if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context, kCipherSuites) != 1 ||
      SSL_CTX_set1_groups_list(context, kGroups) != 1 || SSL_CTX_set_num_tickets(context, 0) != 1) {
    return false;
  }
  // A key exchange beside the key (psk_dhe_ke) always: it gives forward secrecy.
  SSL_CTX_clear_options(context, SSL_OP_ALLOW_NO_DHE_KEX);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  if (role == TlsRole::kInitiator) {
    // No certificate is trusted: a server that offers one instead of the key fails here, and at
    // check_tls.
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_psk_use_session_callback(context, offer_key);
  } else {
    SSL_CTX_set_psk_find_session_callback(context, find_key);
  }
  return true;
}

}  // namespace

TlsIdentity::TlsIdentity(const PreSharedKey& pre_shared_key, const SessionId& session)
    : key(pre_shared_key), name(identity_name(session)) {}

TlsIdentity::~TlsIdentity() { wipe(key); }

Result<SslPointer> make_tls(TlsRole role, TlsIdentity& identity) {
  clear_openssl_errors();
  const std::unique_ptr<SSL_CTX, FreeSslContext> context(SSL_CTX_new(TLS_method()));
  if (!context || !configure(context.get(), role)) {
    return openssl_status(ErrorCode::kUnsupported, "setting up TLS 1.3");
  }
  SslPointer ssl(SSL_new(context.get()));
  std::unique_ptr<BIO, FreeBio> from_network(BIO_new(BIO_s_mem()));
  std::unique_ptr<BIO, FreeBio> to_network(BIO_new(BIO_s_mem()));
  if (!ssl || !from_network || !to_network || SSL_set_app_data(ssl.get(), &identity) != 1) {
    return openssl_status(ErrorCode::kUnsupported, "setting up TLS 1.3");
  }
  // Nothing to read means "later", not the end.
  BIO_set_mem_eof_return(from_network.get(), -1);
  BIO_set_mem_eof_return(to_network.get(), -1);
  SSL_set_bio(ssl.get(), from_network.release(), to_network.release());
  if (role == TlsRole::kInitiator) {
    SSL_set_connect_state(ssl.get());
  } else {
    SSL_set_accept_state(ssl.get());
  }
  return ssl;
}

Status check_tls(const SSL* ssl) {
  if (SSL_version(ssl) != TLS1_3_VERSION) {
    return Status(ErrorCode::kUnauthenticated, "the control connection is not TLS 1.3");
  }
  if (SSL_session_reused(ssl) != 1 || SSL_get0_peer_certificate(ssl) != nullptr) {
    return Status(ErrorCode::kUnauthenticated, "the peer did not use the session's key");
  }
  return Status();
}

Result<SessionSecret> export_session_secret(SSL* ssl) {
  std::array<std::byte, 32> bytes;
  clear_openssl_errors();
  if (SSL_export_keying_material(ssl, reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(),
                                 kExporterLabel, sizeof kExporterLabel - 1, nullptr, 0, 0) != 1) {
    return openssl_status(ErrorCode::kIoError, "exporting the session's secret");
  }
  SessionSecret secret(bytes);
  wipe(bytes);
  return secret;
}

}  // namespace fgsync::transport
