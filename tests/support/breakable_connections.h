// Memory connections between the two halves of a session, which break when a test says so and can
// be made again.
#pragma once

#include <atomic>
#include <deque>
#include <memory>

#include "io/sync.h"
#include "transfer/data_connections.h"
#include "transport/memory_stream.h"

namespace fgsync::testing {

// What happens to the connection that carries the Nth frame of a session, counted over all streams
// and connections.
struct Breakage {
  enum class Kind : std::uint8_t {
    kBefore,   // it breaks with that frame, of which nothing arrives
    kAfter,    // it breaks behind that frame, which arrives
    kSwallow,  // that frame and the next few are taken and never arrive; then it breaks, with
               // the stream's end at the latest
  };
  Kind kind = Kind::kBefore;
  std::uint64_t frame = 0;  // from 1; 0: never
  bool lasting = false;     // every later connection breaks the same way, with its first frame
  bool may_connect = true;  // false: a lost connection is not made again
  bool sender_connects = true;
};

// Both halves' connections, and what happens between them.
class BreakableConnections {
 public:
  BreakableConnections(transfer::Session& sender, transfer::Session& receiver, Breakage breakage);

  // Makes the first connection of each stream.
  void open();
  std::uint64_t broken() const { return broken_.load(); }
  std::uint64_t made_again() const { return made_again_.load(); }

 private:
  class Half;
  class Breaking;
  using Connection = transfer::DataStream::Connection;
  struct Ends {
    Connection sending;
    Connection receiving;
  };
  Ends make(std::size_t stream, std::uint32_t generation);
  io::Io& worker_of(transfer::Session& session, std::size_t stream) const;

  transfer::Session& sender_;
  transfer::Session& receiver_;
  const Breakage breakage_;
  std::unique_ptr<transfer::DataConnections> halves_[2];
  std::atomic<std::uint64_t> frames_{0};
  std::atomic<std::uint64_t> broken_{0};
  std::atomic<std::uint64_t> made_again_{0};
  std::deque<io::Channel<Connection>> waiting_;  // for the half that does not connect, by stream
  std::deque<std::atomic<std::uint32_t>> generations_;
};

}  // namespace fgsync::testing
