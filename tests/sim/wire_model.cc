#include "wire_model.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/assert.h"
#include "process.h"

namespace fgsync::sim {
namespace {

constexpr std::size_t kSegmentBytesMax = 64 * 1024;
// TCP_USER_TIMEOUT and keep-alive of the production sockets.
constexpr std::chrono::seconds kGiveUpTime{60};
constexpr std::chrono::milliseconds kRetryTime{200};
constexpr std::string_view kDataMagic = "fgsync-d";
// Of a frame: enough that no two are alike by chance.
constexpr std::size_t kFrameStartBytes = 32;

}  // namespace

io::Duration Wire::delay() {
  return latency +
         io::Duration(std::int64_t(world_.random().skewed(std::uint64_t(latency.count()) + 1)));
}

void Wire::complete(io::Operation*& slot, std::int64_t result, const Process* waiting) {
  if (slot == nullptr) return;
  io::Operation& operation = *slot;
  slot = nullptr;
  operation.result = result;
  operation.in_flight = false;
  const std::coroutine_handle<> waiter = operation.waiter;
  world_.soon([waiter] { waiter.resume(); }, waiting->actor());
}

// ---- Making connections.

void Wire::listen(const std::shared_ptr<Listener>& listener) {
  listeners_[listener->address.text()] = listener;
}

void Wire::connect(const EndpointPointer& endpoint, io::Operation& operation, bool alive) {
  endpoint->connecting = &operation;
  if (!alive) return complete(endpoint->connecting, -ENETUNREACH, endpoint->owner);
  endpoint->remote = *operation.address;
  world_.after(delay(), [this, endpoint] { try_connect(endpoint, 0); });
}

void Wire::try_connect(const EndpointPointer& endpoint, int attempts) {
  if (endpoint->connecting == nullptr) return;  // given up
  if (world_.now() < partition_until_) {
    if (attempts * kRetryTime >= kGiveUpTime) {
      complete(endpoint->connecting, -ETIMEDOUT, endpoint->owner);
      return;
    }
    world_.after(kRetryTime, [this, endpoint, attempts] { try_connect(endpoint, attempts + 1); });
    return;
  }
  const auto found = listeners_.find(endpoint->remote.text());
  if (found == listeners_.end() || found->second->shut || world_.now() < blocked_until_) {
    complete(endpoint->connecting, -ECONNREFUSED, endpoint->owner);
    return;
  }
  auto other = std::make_shared<Endpoint>();
  other->owner = found->second->owner;
  other->local = endpoint->remote;
  other->remote = endpoint->local;
  other->peer = endpoint;
  other->connected = endpoint->connected = true;
  endpoint->peer = other;
  endpoint->id = next_id_++;
  other->id = next_id_++;
  // From far below to far above what a frame takes. Less would be slower than what counts as
  // progress at all: limits::kProgressBytesMin in the shortest timeout.
  other->window = endpoint->window = 2048 + std::size_t(world_.random().skewed(512 * 1024));
  world_.trace("connected", endpoint->id, other->window);
  found->second->waiting.push_back(other);
  complete(endpoint->connecting, 0, endpoint->owner);
  serve(found->second);
}

void Wire::accept(const std::shared_ptr<Listener>& listener, io::Operation& operation) {
  FGSYNC_ASSERT(listener->accepting == nullptr);
  listener->accepting = &operation;
  serve(listener);
}

void Wire::serve(const std::shared_ptr<Listener>& listener) {
  if (listener->accepting == nullptr) return;
  if (listener->shut) return complete(listener->accepting, -EINVAL, listener->owner);
  if (listener->waiting.empty()) return;
  EndpointPointer endpoint = std::move(listener->waiting.front());
  listener->waiting.pop_front();
  const int descriptor = listener->owner->network().adopt(endpoint);
  complete(listener->accepting, descriptor, listener->owner);
}

void Wire::shut_down(const std::shared_ptr<Listener>& listener) {
  listener->shut = true;
  serve(listener);
}

void Wire::close(const std::shared_ptr<Listener>& listener) {
  if (listener->accepting != nullptr) world_.violate("a listener closed under an accept");
  listener->shut = true;
  listeners_.erase(listener->address.text());
  for (const EndpointPointer& endpoint : listener->waiting) close(endpoint);
  listener->waiting.clear();
}

// ---- Sending.

void Wire::send(const EndpointPointer& endpoint, io::Operation& operation) {
  if (endpoint->sending != nullptr) world_.violate("two sends at once on one connection");
  endpoint->sending = &operation;
  ++sends_;
  if (endpoint->carries_data) ++data_sends_;
  if (endpoint->carries_data && sealed) look_at_frame(operation);
  pump(endpoint);
}

// What begins a frame: its head by itself, and behind it what is sealed.
void Wire::look_at_frame(const io::Operation& operation) {
  if (operation.vector_count < 2 || operation.vectors[1].iov_len < kFrameStartBytes) return;
  const auto* const start = static_cast<const char*>(operation.vectors[1].iov_base);
  if (!frames_seen_.emplace(start, kFrameStartBytes).second) {
    world_.violate("two frames are sealed alike");
  }
}

void Wire::pump(const EndpointPointer& endpoint) {
  while (endpoint->sending != nullptr) {
    const EndpointPointer peer = endpoint->peer.lock();
    if (endpoint->shut) return complete(endpoint->sending, -EPIPE, endpoint->owner);
    if (endpoint->error != 0 || peer == nullptr) {
      const int error = endpoint->error != 0 ? endpoint->error : ECONNRESET;
      return complete(endpoint->sending, -error, endpoint->owner);
    }
    io::Operation& operation = *endpoint->sending;
    if (operation.vector_count == 0) {
      return complete(endpoint->sending, std::int64_t(operation.transferred), endpoint->owner);
    }
    const std::size_t used = peer->in_flight + peer->received.size();
    if (used >= peer->window) return;  // goes on when the peer has taken something
    iovec& first = operation.vectors[0];
    const std::size_t bytes = std::min({first.iov_len, peer->window - used, kSegmentBytesMax});
    const auto* const start = static_cast<const std::byte*>(first.iov_base);
    std::vector<std::byte> segment(start, start + bytes);
    first.iov_base = static_cast<std::byte*>(first.iov_base) + bytes;
    first.iov_len -= bytes;
    operation.transferred += bytes;
    if (first.iov_len == 0) {
      --operation.vector_count;
      for (int i = 0; i < operation.vector_count; ++i) {
        operation.vectors[i] = operation.vectors[i + 1];
      }
    }
    if (endpoint->sent_bytes == 0 && bytes >= kDataMagic.size()) {
      endpoint->carries_data = std::memcmp(segment.data(), kDataMagic.data(), 8) == 0;
      if (endpoint->carries_data) peer->carries_data = true;
      if (endpoint->carries_data) ++data_connections;
    }
    endpoint->sent_bytes += bytes;
    meet_faults(endpoint, peer, segment);
    carry(peer, std::move(segment));
  }
}

void Wire::meet_faults(const EndpointPointer& from, const EndpointPointer& to,
                       std::vector<std::byte>& bytes) {
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    const NetworkFault fault = faults_[i];
    if (fault.to_stream && !from->carries_data) continue;
    if ((fault.to_stream ? data_sends_ : sends_) < fault.at) continue;
    faults_.erase(faults_.begin() + std::ptrdiff_t(i));
    world_.trace("network fault", std::uint64_t(fault.kind), from->id);
    switch (fault.kind) {
      case NetworkFault::Kind::kReset:
        world_.after(delay(), [this, from] { break_connection(from, ECONNRESET); });
        world_.after(delay(), [this, to] { break_connection(to, ECONNRESET); });
        break;
      case NetworkFault::Kind::kStall:
        to->stalled_until = world_.now() + fault.time;
        break;
      case NetworkFault::Kind::kPartition:
        partition_until_ = world_.now() + fault.time;
        break;
      case NetworkFault::Kind::kFlip:
        bytes[world_.random().below(bytes.size())] ^= std::byte(1u << world_.random().below(8));
        break;
      case NetworkFault::Kind::kSilence:
        fall_silent(from);
        fall_silent(to);
        break;
      case NetworkFault::Kind::kBlock:
        blocked_until_ = world_.now() + fault.time;
        world_.after(delay(), [this, from] { break_connection(from, ECONNRESET); });
        world_.after(delay(), [this, to] { break_connection(to, ECONNRESET); });
        break;
    }
    return;
  }
}

void Wire::fall_silent(const EndpointPointer& endpoint) {
  endpoint->silent = true;
  world_.after(kGiveUpTime + delay(), [this, endpoint] { break_connection(endpoint, ETIMEDOUT); });
}

void Wire::carry(const EndpointPointer& to, std::vector<std::byte> bytes) {
  to->in_flight += bytes.size();
  to->last_arrival =
      std::max(to->last_arrival, std::max(world_.now(), to->stalled_until) + delay());
  const io::TimePoint sent = world_.now();
  auto shared = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  world_.after(to->last_arrival - sent,
               [this, to, shared, sent] { arrive(to, std::move(*shared), sent); });
}

void Wire::carry_end(const EndpointPointer& to) { carry(to, {}); }

// Nothing in it: the end.
void Wire::arrive(const EndpointPointer& to, std::vector<std::byte> bytes, io::TimePoint sent) {
  const bool behind =
      std::any_of(held_.begin(), held_.end(), [&](const Held& held) { return held.to == to; });
  if ((world_.now() < partition_until_ || behind) && to->error == 0) {
    if (world_.now() - sent >= kGiveUpTime) {
      break_connection(to, ETIMEDOUT);
      if (const EndpointPointer peer = to->peer.lock()) break_connection(peer, ETIMEDOUT);
      return;
    }
    // Sent again and again, the later ones behind it.
    held_.push_back({to, std::move(bytes), sent});
    if (held_.size() == 1) world_.after(kRetryTime, [this] { release_held(); });
    return;
  }
  if (to->silent) return;  // never acknowledged
  to->in_flight -= bytes.size();
  if (to->closed) {
    // Nobody there any more: the sender is told so, unless it is the end as well.
    const EndpointPointer peer = to->peer.lock();
    if (!bytes.empty() && peer != nullptr) {
      world_.after(delay(), [this, peer] { break_connection(peer, ECONNRESET); });
    }
    return;
  }
  if (to->error != 0) return;
  if (bytes.empty()) to->ended = true;
  to->received.insert(to->received.end(), bytes.begin(), bytes.end());
  serve(to);
}

// In the order they came, so that no connection's bytes change places.
void Wire::release_held() {
  std::vector<Held> held;
  held.swap(held_);
  for (Held& segment : held) arrive(segment.to, std::move(segment.bytes), segment.sent);
}

// ---- Receiving.

void Wire::receive(const EndpointPointer& endpoint, io::Operation& operation) {
  if (endpoint->receiving != nullptr) world_.violate("two receives at once on one connection");
  endpoint->receiving = &operation;
  serve(endpoint);
}

void Wire::serve(const EndpointPointer& endpoint) {
  if (endpoint->receiving == nullptr) return;
  io::Operation& operation = *endpoint->receiving;
  iovec& room = operation.vectors[0];
  std::size_t bytes = std::min(room.iov_len, endpoint->received.size());
  // A receive may end with less than there is.
  if (!operation.wait_all && bytes > 1 && world_.random().percent(20)) {
    bytes = 1 + std::size_t(world_.random().below(bytes));
  }
  std::copy_n(endpoint->received.begin(), bytes, static_cast<std::byte*>(room.iov_base));
  endpoint->received.erase(endpoint->received.begin(),
                           endpoint->received.begin() + std::ptrdiff_t(bytes));
  room.iov_base = static_cast<std::byte*>(room.iov_base) + bytes;
  room.iov_len -= bytes;
  operation.transferred += bytes;
  if (endpoint->carries_data) data_bytes += bytes;
  const bool done = room.iov_len == 0 || (!operation.wait_all && operation.transferred > 0);
  if (done || endpoint->ended || endpoint->shut) {
    complete(endpoint->receiving, std::int64_t(operation.transferred), endpoint->owner);
  } else if (endpoint->error != 0) {
    complete(endpoint->receiving, -endpoint->error, endpoint->owner);
  }
  const EndpointPointer peer = endpoint->peer.lock();
  if (bytes > 0 && peer != nullptr) pump(peer);
}

// ---- Ends.

void Wire::break_connection(const EndpointPointer& endpoint, int error) {
  if (endpoint->error != 0 || endpoint->closed) return;
  world_.trace("broken", endpoint->id, std::uint64_t(error));
  endpoint->error = error;
  if (endpoint->carries_data) lost_data_connections_.insert((endpoint->id + 1) / 2);
  if (endpoint->received.empty() || endpoint->receiving != nullptr) serve(endpoint);
  pump(endpoint);
}

void Wire::shut_down(const EndpointPointer& endpoint) {
  complete(endpoint->connecting, -ECONNABORTED, endpoint->owner);
  if (endpoint->shut) return;
  endpoint->shut = true;
  const EndpointPointer peer = endpoint->peer.lock();
  serve(endpoint);
  pump(endpoint);
  if (endpoint->connected && endpoint->error == 0 && peer != nullptr) carry_end(peer);
}

// What a kernel does when the last descriptor goes.
void Wire::finish(const EndpointPointer& endpoint) {
  const EndpointPointer peer = endpoint->peer.lock();
  if (endpoint->connected && endpoint->error == 0 && peer != nullptr) {
    if (!endpoint->received.empty()) {
      // tcp(7): what was not read makes it a reset.
      world_.after(delay(), [this, peer] { break_connection(peer, ECONNRESET); });
    } else if (!endpoint->shut) {
      carry_end(peer);
    }
  }
  endpoint->closed = true;
  endpoint->received.clear();
  if (peer != nullptr) pump(peer);
}

void Wire::close(const EndpointPointer& endpoint) {
  if (endpoint->sending != nullptr || endpoint->receiving != nullptr ||
      endpoint->connecting != nullptr) {
    world_.violate("a socket closed under an operation");
  }
  if (!endpoint->closed) finish(endpoint);
}

void Wire::drop(const EndpointPointer& endpoint, bool powerless) {
  if (endpoint->closed) return;
  const EndpointPointer peer = endpoint->peer.lock();
  if (powerless) {
    endpoint->silent = endpoint->closed = true;
    if (peer != nullptr) {
      const auto notices = io::Duration(std::chrono::seconds(1 + world_.random().below(60)));
      world_.after(notices, [this, peer] { break_connection(peer, ETIMEDOUT); });
    }
  } else {
    finish(endpoint);
  }
  endpoint->error = ECONNRESET;
  complete(endpoint->connecting, -ECONNABORTED, endpoint->owner);
  complete(endpoint->receiving, -ECONNRESET, endpoint->owner);
  complete(endpoint->sending, -ECONNRESET, endpoint->owner);
}

}  // namespace fgsync::sim
