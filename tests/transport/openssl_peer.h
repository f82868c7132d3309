// A TLS peer made directly with OpenSSL, apart from the code under test: it can be what ours
// refuses to be (older, without the key, with a certificate instead), and it says inside TLS what
// ours would never say.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/io.h"
#include "transport/session_secret.h"

namespace fgsync::transport {

struct OpensslPeerOptions {
  bool server = false;
  int version_max = TLS1_3_VERSION;
  std::optional<PreSharedKey> key;
  std::string identity;
  bool certificate = false;  // self-signed, made on the spot
};

class OpensslPeer {
 public:
  explicit OpensslPeer(const OpensslPeerOptions& options);
  ~OpensslPeer();

  // One step of the handshake with what has come so far; true when it is finished.
  bool step();
  bool failed() const { return failed_; }
  void give(std::span<const std::byte> bytes);
  std::vector<std::byte> take();

  // Plain bytes to be sealed: then take() them.
  void write(std::span<const std::byte> bytes);
  SessionSecret exported_secret();

 private:
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
  OpensslPeerOptions options_;
  bool failed_ = false;
};

// Runs the peer's handshake over the socket. True when it finished; false when it failed, or the
// other side went away.
io::Task<bool> run_handshake(io::Io& io, const io::Socket& socket, OpensslPeer& peer);

}  // namespace fgsync::transport
