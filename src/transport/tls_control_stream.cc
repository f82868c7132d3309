#include "transport/tls_control_stream.h"

#include <openssl/bio.h>

#include <array>
#include <string>

#include "base/assert.h"
#include "base/limits.h"
#include "base/mark.h"
#include "transport/openssl_status.h"
#include "transport/tls_stream.h"

namespace fgsync::transport {
namespace {

constexpr std::size_t kLengthBytes = 4;
// What one socket call moves at most: four full TLS records.
constexpr std::size_t kNetworkBytes = 64 * limits::kKiB;

Status status_of_failed_read(int error) {
  if (error == SSL_ERROR_ZERO_RETURN) {
    return Status(ErrorCode::kConnectionLost, "the peer closed the control connection");
  }
  return openssl_status(ErrorCode::kProtocolError, "reading the control connection");
}

}  // namespace

Result<std::unique_ptr<TlsStream>> TlsStream::create(io::Io& io, io::Socket socket, TlsRole role,
                                                     const PreSharedKey& key,
                                                     const SessionId& session,
                                                     std::uint64_t records_per_key) {
  auto identity = std::make_unique<TlsIdentity>(key, session);
  Result<SslPointer> ssl = make_tls(role, *identity);
  FGSYNC_RETURN_IF_ERROR(ssl.status());
  return std::unique_ptr<TlsStream>(
      new TlsStream(io, std::move(socket), std::move(identity), std::move(*ssl), records_per_key));
}

TlsStream::TlsStream(io::Io& io, io::Socket socket, std::unique_ptr<TlsIdentity> identity,
                     SslPointer ssl, std::uint64_t records_per_key)
    : io_(io),
      socket_(std::move(socket)),
      identity_(std::move(identity)),
      ssl_(std::move(ssl)),
      records_per_key_(records_per_key),
      outgoing_(kNetworkBytes),
      incoming_(kNetworkBytes) {}

void TlsStream::shutdown() {
  shut_down_.store(true, std::memory_order_release);
  socket_.shutdown();
}

Status TlsStream::usable() const {
  if (shut_down_.load(std::memory_order_acquire)) {
    return Status(ErrorCode::kConnectionLost, "the control connection was shut down");
  }
  return failure_;
}

// The first failure is the reason that every later call gives; it ends both directions.
Status TlsStream::settle(Status outcome) {
  if (outcome.ok()) return outcome;
  if (Status earlier = usable(); !earlier.ok()) return earlier;
  mark("control_broken");
  failure_ = outcome;
  socket_.shutdown();
  return outcome;
}

io::Task<Result<SessionSecret>> TlsStream::handshake() {
  FGSYNC_ASSERT(identity_);
  Status exchanged = co_await exchange_handshake();
  SSL_set_app_data(ssl_.get(), nullptr);
  identity_.reset();
  FGSYNC_CO_RETURN_IF_ERROR(settle(std::move(exchanged)));
  FGSYNC_CO_RETURN_IF_ERROR(settle(check_tls(ssl_.get())));
  Result<SessionSecret> secret = export_session_secret(ssl_.get());
  FGSYNC_CO_RETURN_IF_ERROR(settle(secret.status()));
  co_return secret;
}

io::Task<Status> TlsStream::exchange_handshake() {
  for (;;) {
    clear_openssl_errors();
    const int done = SSL_do_handshake(ssl_.get());
    const int error = SSL_get_error(ssl_.get(), done);
    Status refused;
    if (done != 1 && error != SSL_ERROR_WANT_READ) {
      refused = openssl_status(ErrorCode::kUnauthenticated, "TLS handshake");
    }
    // Also after a refusal: the alert tells the peer why.
    Status flushed = co_await flush();
    FGSYNC_CO_RETURN_IF_ERROR(std::move(refused));
    FGSYNC_CO_RETURN_IF_ERROR(std::move(flushed));
    if (done == 1) co_return Status();
    Status filled = co_await fill();
    FGSYNC_CO_RETURN_IF_ERROR(filled.with_context("TLS handshake"));
  }
}

io::Task<Status> TlsStream::send(std::vector<std::byte> message) {
  if (message.size() > limits::kControlMessageBytesMax) {
    co_return Status(ErrorCode::kInvalidArgument, "a control message is too large");
  }
  FGSYNC_CO_RETURN_IF_ERROR(usable());
  Status sent = co_await send_message(message);
  co_return settle(std::move(sent));
}

io::Task<Result<std::vector<std::byte>>> TlsStream::receive() {
  FGSYNC_CO_RETURN_IF_ERROR(usable());
  std::vector<std::byte> message;
  Status received = co_await receive_message(message);
  FGSYNC_CO_RETURN_IF_ERROR(settle(std::move(received)));
  co_return std::move(message);
}

io::Task<Status> TlsStream::send_message(std::span<const std::byte> message) {
  FGSYNC_CO_RETURN_IF_ERROR(refresh_key(message.size()));
  std::array<std::byte, kLengthBytes> length;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length[i] = std::byte(message.size() >> (8 * i));
  FGSYNC_CO_RETURN_IF_ERROR(write_plain(length));
  FGSYNC_CO_RETURN_IF_ERROR(write_plain(message));
  Status flushed = co_await flush();
  co_return flushed;
}

io::Task<Status> TlsStream::receive_message(std::vector<std::byte>& message) {
  std::array<std::byte, kLengthBytes> length;
  Status received = co_await read_plain(length);
  FGSYNC_CO_RETURN_IF_ERROR(std::move(received));
  std::size_t message_bytes = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) message_bytes |= std::size_t(length[i]) << (8 * i);
  if (message_bytes > limits::kControlMessageBytesMax) {
    co_return Status(
        ErrorCode::kProtocolError,
        "a control message of " + std::to_string(message_bytes) + " bytes is over the bound");
  }
  message.resize(message_bytes);
  Status rest = co_await read_plain(message);
  co_return rest;
}

// Into the memory BIO, which takes everything.
Status TlsStream::write_plain(std::span<const std::byte> bytes) {
  if (bytes.empty()) return Status();
  clear_openssl_errors();
  std::size_t written = 0;
  if (SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written) != 1) {
    return openssl_status(ErrorCode::kProtocolError, "writing the control connection");
  }
  FGSYNC_ASSERT(written == bytes.size());
  return Status();
}

// OpenSSL counts no records by itself, so that a long session could outlive its key.
Status TlsStream::refresh_key(std::size_t message_bytes) {
  records_under_key_ += 2 + message_bytes / SSL3_RT_MAX_PLAIN_LENGTH;
  if (records_under_key_ < records_per_key_) return Status();
  records_under_key_ = 0;
  clear_openssl_errors();
  if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1) return Status();
  return openssl_status(ErrorCode::kProtocolError, "changing the control connection's key");
}

io::Task<Status> TlsStream::read_plain(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    clear_openssl_errors();
    std::size_t taken = 0;
    const int read = SSL_read_ex(ssl_.get(), bytes.data(), bytes.size(), &taken);
    if (read == 1) {
      bytes = bytes.subspan(taken);
      continue;
    }
    const int error = SSL_get_error(ssl_.get(), read);
    Status failed;
    if (error != SSL_ERROR_WANT_READ) failed = status_of_failed_read(error);
    // Reading can make TLS answer: an alert, a key update.
    Status flushed = co_await flush();
    FGSYNC_CO_RETURN_IF_ERROR(std::move(failed));
    FGSYNC_CO_RETURN_IF_ERROR(std::move(flushed));
    Status filled = co_await fill();
    FGSYNC_CO_RETURN_IF_ERROR(std::move(filled));
  }
  co_return Status();
}

// Sends what TLS has put out. Whoever waits its turn may find that the one before has sent its
// bytes too.
io::Task<Status> TlsStream::flush() {
  BIO* to_network = SSL_get_wbio(ssl_.get());
  if (BIO_ctrl_pending(to_network) == 0) co_return Status();
  auto turn = co_await flushing_.lock(io_);
  while (BIO_ctrl_pending(to_network) > 0) {
    const int taken = BIO_read(to_network, outgoing_.data(), int(outgoing_.size()));
    FGSYNC_ASSERT(taken > 0);
    const std::span<const std::byte> bytes = std::span(outgoing_).first(std::size_t(taken));
    Status sent = co_await io::send_all(io_, socket_, bytes);
    FGSYNC_CO_RETURN_IF_ERROR(std::move(sent));
  }
  co_return Status();
}

// Gives TLS what has come from the network, at least one byte.
io::Task<Status> TlsStream::fill() {
  Result<std::size_t> received = co_await io::receive_some(io_, socket_, incoming_);
  FGSYNC_CO_RETURN_IF_ERROR(received.status());
  if (*received == 0) {
    co_return Status(ErrorCode::kConnectionLost, "the peer closed the control connection");
  }
  const int given = BIO_write(SSL_get_rbio(ssl_.get()), incoming_.data(), int(*received));
  FGSYNC_ASSERT(given == int(*received));
  co_return Status();
}

io::Task<Result<TlsControl>> establish_tls_control(io::Io& io, io::Socket socket, TlsRole role,
                                                   const PreSharedKey& key,
                                                   const SessionId& session, io::TimePoint deadline,
                                                   std::uint64_t records_per_key) {
  Result<std::unique_ptr<TlsStream>> created =
      TlsStream::create(io, std::move(socket), role, key, session, records_per_key);
  FGSYNC_CO_RETURN_IF_ERROR(created.status());
  TlsStream* const stream = created->get();
  const io::DeadlineGuard guard(io, deadline, [stream] { stream->shutdown(); });
  Result<SessionSecret> secret = co_await stream->handshake();
  if (guard.expired()) {
    co_return Status(ErrorCode::kTimeout, "TLS handshake: no answer in time");
  }
  FGSYNC_CO_RETURN_IF_ERROR(secret.status());
  TlsControl control{std::move(*created), *secret};
  co_return std::move(control);
}

}  // namespace fgsync::transport
