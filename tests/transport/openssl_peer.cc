#include "transport/openssl_peer.h"

#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

namespace fgsync::transport {
namespace {

SSL_SESSION* key_session(SSL* ssl, const PreSharedKey& key) {
  constexpr unsigned char kSuite[] = {0x13, 0x01};
  SSL_SESSION* session = SSL_SESSION_new();
  SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.data()),
                              key.size());
  SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kSuite));
  SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION);
  return session;
}

int use_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* identity_bytes,
            SSL_SESSION** session) {
  const auto* options = static_cast<const OpensslPeerOptions*>(SSL_get_app_data(ssl));
  *session = key_session(ssl, *options->key);
  *identity = reinterpret_cast<const unsigned char*>(options->identity.data());
  *identity_bytes = options->identity.size();
  return 1;
}

int find_key(SSL* ssl, const unsigned char*, std::size_t, SSL_SESSION** session) {
  const auto* options = static_cast<const OpensslPeerOptions*>(SSL_get_app_data(ssl));
  *session = key_session(ssl, *options->key);
  return 1;
}

void add_certificate(SSL_CTX* context) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("stranger"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_sign(certificate, key, EVP_sha256());
  SSL_CTX_use_certificate(context, certificate);
  SSL_CTX_use_PrivateKey(context, key);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

}  // namespace

OpensslPeer::OpensslPeer(const OpensslPeerOptions& options) : options_(options) {
  context_ = SSL_CTX_new(TLS_method());
  SSL_CTX_set_max_proto_version(context_, options_.version_max);
  if (options_.certificate) add_certificate(context_);
  if (options_.key && options_.server) SSL_CTX_set_psk_find_session_callback(context_, find_key);
  if (options_.key && !options_.server) SSL_CTX_set_psk_use_session_callback(context_, use_key);
  ssl_ = SSL_new(context_);
  SSL_set_app_data(ssl_, &options_);
  SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  BIO_set_mem_eof_return(SSL_get_rbio(ssl_), -1);
  if (options_.server) {
    SSL_set_accept_state(ssl_);
  } else {
    SSL_set_connect_state(ssl_);
  }
}

OpensslPeer::~OpensslPeer() {
  SSL_free(ssl_);
  SSL_CTX_free(context_);
}

bool OpensslPeer::step() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_);
  failed_ = done != 1 && SSL_get_error(ssl_, done) != SSL_ERROR_WANT_READ;
  ERR_clear_error();
  return done == 1;
}

void OpensslPeer::give(std::span<const std::byte> bytes) {
  EXPECT_EQ(BIO_write(SSL_get_rbio(ssl_), bytes.data(), int(bytes.size())), int(bytes.size()));
}

std::vector<std::byte> OpensslPeer::take() {
  std::vector<std::byte> bytes(BIO_ctrl_pending(SSL_get_wbio(ssl_)));
  if (!bytes.empty()) BIO_read(SSL_get_wbio(ssl_), bytes.data(), int(bytes.size()));
  return bytes;
}

void OpensslPeer::write(std::span<const std::byte> bytes) {
  EXPECT_EQ(SSL_write(ssl_, bytes.data(), int(bytes.size())), int(bytes.size()));
}

SessionSecret OpensslPeer::exported_secret() {
  std::array<std::byte, 32> bytes{};
  const std::string label = "EXPORTER-fgsync-session";
  EXPECT_EQ(SSL_export_keying_material(ssl_, reinterpret_cast<unsigned char*>(bytes.data()),
                                       bytes.size(), label.data(), label.size(), nullptr, 0, 0),
            1);
  return SessionSecret(bytes);
}

io::Task<bool> run_handshake(io::Io& io, const io::Socket& socket, OpensslPeer& peer) {
  std::vector<std::byte> room(65536);
  for (;;) {
    const bool done = peer.step();
    const std::vector<std::byte> outgoing = peer.take();
    Status sent = co_await io::send_all(io, socket, outgoing);
    if (done) co_return sent.ok();
    if (peer.failed() || !sent.ok()) co_return false;
    Result<std::size_t> received = co_await io::receive_some(io, socket, room);
    if (!received.ok() || *received == 0) co_return false;
    peer.give(std::span(room).first(*received));
  }
}

}  // namespace fgsync::transport
