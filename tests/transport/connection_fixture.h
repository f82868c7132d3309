// What the tests of connections share: a session's key and id, and strangers who connect without
// belonging.
#pragma once

#include <optional>
#include <utility>

#include "io/sync.h"
#include "transport/connection.h"
#include "transport/engine_fixture.h"
#include "transport/preamble.h"

namespace fgsync::transport {

inline PreSharedKey key_of(unsigned first) {
  PreSharedKey key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = std::byte(first + i);
  return key;
}

inline SessionId session_of(unsigned first) {
  SessionId id;
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = std::byte(first + i);
  return id;
}

inline SessionSecret secret_of(unsigned first) {
  const PreSharedKey bytes = key_of(first);
  return SessionSecret(bytes);
}

struct Listening {
  io::Socket socket;
  io::SocketAddress address;
};

inline Listening listen_on_loopback(io::Io& io) {
  io::Network& network = io.environment().network();
  auto socket = network.listen(loopback_address());
  EXPECT_TRUE(socket.ok());
  auto address = network.local_address(*socket);
  EXPECT_TRUE(address.ok());
  return {std::move(*socket), *address};
}

// Connects and says `bytes`; the socket is empty when that failed.
inline io::Task<void> connect_and_say(io::Io& io, io::SocketAddress address, Bytes bytes,
                                      io::Socket& out) {
  auto socket = io.environment().network().create(address, std::nullopt);
  CO_ASSERT(socket.ok());
  Status connected = co_await io::connect(io, *socket, address);
  CO_ASSERT(connected.ok());
  Status sent = co_await io::send_all(io, *socket, bytes);
  CO_ASSERT(sent.ok());
  out = std::move(*socket);
}

inline Bytes to_bytes(const PreambleBytes& preamble) {
  return Bytes(preamble.begin(), preamble.end());
}

// Whether the other side closes the connection without another byte.
inline io::Task<void> expect_closed(io::Io& io, const io::Socket& socket) {
  std::byte room[64];
  Result<std::size_t> received = co_await io::receive_some(io, socket, room);
  EXPECT_TRUE(!received.ok() || *received == 0);
}

}  // namespace fgsync::transport
