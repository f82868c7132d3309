// The network between the hosts: connections with a window, a delay and an order each, and
// everything that can happen to them. What TCP guarantees holds (bytes come in order, or the
// connection breaks), except for what its checksum lets through.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "io/io.h"
#include "world.h"

namespace fgsync::sim {

class Process;

// One end of a connection, or a socket that is not connected yet.
struct Endpoint {
  Process* owner = nullptr;
  io::SocketAddress local;
  io::SocketAddress remote;
  std::weak_ptr<Endpoint> peer;
  std::deque<std::byte> received;
  std::uint64_t in_flight = 0;  // sent to this end and not arrived
  io::TimePoint last_arrival{};
  io::TimePoint stalled_until{};
  bool connected = false;
  bool ended = false;   // the peer will send no more
  bool shut = false;    // by its owner
  bool closed = false;  // nobody holds it any more
  bool silent = false;  // its host has no power: nothing comes from here ever again
  int error = 0;        // after what has been received: why it broke
  std::size_t window = 0;
  io::Operation* receiving = nullptr;
  io::Operation* sending = nullptr;
  io::Operation* connecting = nullptr;
  std::uint64_t id = 0;
  bool carries_data = false;  // of a data connection, by its first bytes
  std::uint64_t sent_bytes = 0;
};
using EndpointPointer = std::shared_ptr<Endpoint>;

struct Listener {
  Process* owner = nullptr;
  io::SocketAddress address;
  std::deque<EndpointPointer> waiting;
  io::Operation* accepting = nullptr;
  bool shut = false;
};

struct NetworkFault {
  enum class Kind : std::uint8_t {
    kReset,
    kStall,
    kPartition,
    kFlip,
    kSilence,  // nothing arrives over this one connection any more, and nobody is told
    kBlock,    // this connection breaks and new ones are refused; others go on
  };
  Kind kind = Kind::kReset;
  std::uint64_t at = 0;    // the number of the send that it happens to
  io::Duration time{};     // of a stall, a partition or a block
  bool to_stream = false;  // sends over data connections count alone
};

// All hosts' network.
class Wire {
 public:
  explicit Wire(World& world) : world_(world) {}

  io::Duration latency{100'000};
  // Taken from data connections by either side, and how many of these there were.
  std::uint64_t data_bytes = 0;
  std::uint64_t data_connections = 0;
  // That either end has found broken.
  std::uint64_t data_connections_lost() const { return lost_data_connections_.size(); }
  // Frames are sealed: no two look alike, or a key has been used twice with one nonce.
  bool sealed = false;

  // Of a process that is `alive`; a dead one's fails.
  void connect(const EndpointPointer& endpoint, io::Operation& operation, bool alive);
  void accept(const std::shared_ptr<Listener>& listener, io::Operation& operation);
  void send(const EndpointPointer& endpoint, io::Operation& operation);
  void receive(const EndpointPointer& endpoint, io::Operation& operation);
  void shut_down(const EndpointPointer& endpoint);
  void shut_down(const std::shared_ptr<Listener>& listener);
  void close(const EndpointPointer& endpoint);
  void close(const std::shared_ptr<Listener>& listener);
  // Its process has died: the kernel closes it, or, without power, the peer hears nothing any more
  // and notices at some time. What the dead process still does with it fails.
  void drop(const EndpointPointer& endpoint, bool powerless);

  void listen(const std::shared_ptr<Listener>& listener);
  bool is_taken(const io::SocketAddress& address) const {
    return listeners_.contains(address.text());
  }
  std::uint16_t next_port() { return next_port_++; }
  // Those that a run was over before: they would meet the next one while it makes its connections.
  void forget_stream_faults() {
    std::erase_if(faults_, [](const NetworkFault& fault) { return fault.to_stream; });
  }
  // `at` counts sends from now on.
  void plan(NetworkFault fault) {
    fault.at += fault.to_stream ? data_sends_ : sends_;
    faults_.push_back(fault);
  }
  // Whether no new connection comes through now.
  bool is_closed() const { return world_.now() < std::max(partition_until_, blocked_until_); }
  // All is well from now on.
  void heal() {
    partition_until_ = {};
    blocked_until_ = {};
    faults_.clear();
  }

 private:
  void try_connect(const EndpointPointer& endpoint, int attempts);
  void pump(const EndpointPointer& endpoint);
  void carry(const EndpointPointer& to, std::vector<std::byte> bytes);
  void carry_end(const EndpointPointer& to);
  void arrive(const EndpointPointer& to, std::vector<std::byte> bytes, io::TimePoint sent);
  void finish(const EndpointPointer& endpoint);
  void release_held();
  void serve(const EndpointPointer& endpoint);
  void serve(const std::shared_ptr<Listener>& listener);
  void break_connection(const EndpointPointer& endpoint, int error);
  void complete(io::Operation*& slot, std::int64_t result, const Process* waiting);
  void meet_faults(const EndpointPointer& from, const EndpointPointer& to,
                   std::vector<std::byte>& bytes);
  void fall_silent(const EndpointPointer& endpoint);
  void look_at_frame(const io::Operation& operation);
  io::Duration delay();

  // What a partition keeps back.
  struct Held {
    EndpointPointer to;
    std::vector<std::byte> bytes;
    io::TimePoint sent;
  };

  World& world_;
  std::vector<NetworkFault> faults_;
  std::vector<Held> held_;
  std::map<std::string, std::shared_ptr<Listener>> listeners_;
  std::uint16_t next_port_ = 40'000;
  io::TimePoint partition_until_{};
  io::TimePoint blocked_until_{};
  std::set<std::uint64_t> lost_data_connections_;
  std::uint64_t sends_ = 0;
  std::uint64_t data_sends_ = 0;
  std::set<std::string> frames_seen_;  // how each begins
  std::uint64_t next_id_ = 1;
};

}  // namespace fgsync::sim
