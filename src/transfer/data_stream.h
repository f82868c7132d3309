// One stream of a session: the connection that carries it now, and what is left of the ones before.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "io/io.h"
#include "transport/stream.h"

namespace fgsync::transfer {

class DataStream {
 public:
  struct Connection {
    std::shared_ptr<transport::Stream> stream;
    std::uint32_t generation = 0;  // how many the stream had before, counted by the initiator
  };

  // `io` is the worker on which its connections are used.
  DataStream(io::Io& io, Connection first) : io_(io), current_(std::move(first)) {}

  io::Io& io() const { return io_; }
  // What carries it now. Any thread.
  Connection connection() const;
  // The next connection, once nothing uses the last one any more.
  void replace(Connection next);
  // Connections up to this generation are of no use any more: every call in flight on one returns.
  // Any thread.
  void drop(std::uint32_t generation);
  // For good. Any thread.
  void shutdown();
  // On the wire so far, over all connections. Any thread.
  std::uint64_t wire_bytes() const;

 private:
  io::Io& io_;
  mutable std::mutex mutex_;
  Connection current_;            // guarded by mutex_
  std::int64_t dropped_ = -1;     // guarded by mutex_; the highest generation of no use
  std::uint64_t past_bytes_ = 0;  // guarded by mutex_; of the connections before
};

// One whose first connection stands.
inline std::unique_ptr<DataStream> make_stream(io::Io& io,
                                               std::unique_ptr<transport::Stream> connection,
                                               std::uint32_t generation = 0) {
  return std::make_unique<DataStream>(io,
                                      DataStream::Connection{std::move(connection), generation});
}

}  // namespace fgsync::transfer
