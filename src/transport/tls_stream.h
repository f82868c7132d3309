// The control stream over TLS, in the two steps that establish_tls_control() takes at once. The
// listener needs them apart: it ends handshakes in flight when it stops.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "io/sync.h"
#include "transport/tls_context.h"
#include "transport/tls_control_stream.h"

namespace fgsync::transport {

// One coroutine sends and one receives, on `io`'s worker. TLS itself never waits: it works between
// memory BIOs, and what it wants sent is flushed in order.
class TlsStream final : public ControlStream {
 public:
  static Result<std::unique_ptr<TlsStream>> create(io::Io& io, io::Socket socket, TlsRole role,
                                                   const PreSharedKey& key,
                                                   const SessionId& session,
                                                   std::uint64_t records_per_key);

  // First of all, once. kUnauthenticated when the peer does not have the key or does not speak
  // TLS 1.3, kConnectionLost when it goes away.
  io::Task<Result<SessionSecret>> handshake();

  io::Task<Status> send(std::vector<std::byte> message) override;
  io::Task<Result<std::vector<std::byte>>> receive() override;
  void shutdown() override;

 private:
  TlsStream(io::Io& io, io::Socket socket, std::unique_ptr<TlsIdentity> identity, SslPointer ssl,
            std::uint64_t records_per_key);

  Status usable() const;
  Status settle(Status outcome);
  io::Task<Status> exchange_handshake();
  io::Task<Status> send_message(std::span<const std::byte> message);
  io::Task<Status> receive_message(std::vector<std::byte>& message);
  Status write_plain(std::span<const std::byte> bytes);
  Status refresh_key(std::size_t message_bytes);
  io::Task<Status> read_plain(std::span<std::byte> bytes);
  io::Task<Status> flush();
  io::Task<Status> fill();

  io::Io& io_;
  const io::Socket socket_;
  std::unique_ptr<TlsIdentity> identity_;  // until the handshake is over
  const SslPointer ssl_;
  const std::uint64_t records_per_key_;
  std::uint64_t records_under_key_ = 0;
  io::AsyncMutex
      flushing_;  // held while bytes taken from TLS are on their way, so that they stay in order
  std::vector<std::byte> outgoing_;  // owned by the holder of flushing_
  std::vector<std::byte> incoming_;
  Status failure_;  // why every later call fails
  std::atomic<bool> shut_down_{false};
};

}  // namespace fgsync::transport
