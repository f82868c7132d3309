#include "support/breakable_connections.h"

#include "wire/frame.h"

namespace fgsync::testing {
namespace {

// Frames that are on their way when a connection breaks.
constexpr std::uint64_t kSwallowed = 3;

}  // namespace

// The sending end of a connection.
class BreakableConnections::Breaking final : public transport::Stream {
 public:
  Breaking(std::unique_ptr<transport::Stream> stream, BreakableConnections& all, bool is_first)
      : stream_(std::move(stream)), all_(all), is_first_(is_first) {}

  io::Task<Status> send(transport::FrameHeaderBytes header, Buffer payload) override {
    const std::uint64_t number = ++all_.frames_;
    ++own_frames_;
    if (swallowed_ > 0) return swallow(header);
    if (!is_struck(number)) return stream_->send(header, std::move(payload));
    switch (all_.breakage_.kind) {
      case Breakage::Kind::kBefore:
        break_off();
        break;
      case Breakage::Kind::kAfter:
        return send_last(header, std::move(payload));
      case Breakage::Kind::kSwallow:
        return swallow(header);
    }
    return stream_->send(header, std::move(payload));
  }
  io::Task<Result<transport::ReceivedFrame>> receive() override { return stream_->receive(); }
  void shutdown() override { stream_->shutdown(); }
  std::uint64_t wire_bytes() const override { return stream_->wire_bytes(); }

 private:
  bool is_struck(std::uint64_t number) const {
    const Breakage& breakage = all_.breakage_;
    if (breakage.frame == 0) return false;
    if (is_first_) return number == breakage.frame;
    return breakage.lasting && own_frames_ == 1;
  }
  void break_off() {
    if (!std::exchange(is_broken_, true)) ++all_.broken_;
    stream_->shutdown();
  }
  // The stream's end is the last that could be noticed to be missing.
  io::Task<Status> swallow(transport::FrameHeaderBytes header) {
    const auto decoded = wire::decode_frame_header(header);
    const bool last = decoded.ok() && decoded->type == wire::FrameType::kStreamEnd;
    if (++swallowed_ > kSwallowed || last) {
      break_off();
      co_return Status(ErrorCode::kConnectionLost, "broken off");
    }
    co_return Status();
  }
  io::Task<Status> send_last(transport::FrameHeaderBytes header, Buffer payload) {
    Status sent = co_await stream_->send(header, std::move(payload));
    break_off();
    co_return sent;
  }

  const std::unique_ptr<transport::Stream> stream_;
  BreakableConnections& all_;
  const bool is_first_;
  bool is_broken_ = false;
  std::uint64_t own_frames_ = 0;
  std::uint64_t swallowed_ = 0;
};

class BreakableConnections::Half final : public transfer::DataConnections {
 public:
  Half(BreakableConnections& all, bool sends, bool connects)
      : all_(all), sends_(sends), connects_(connects) {}

  io::Task<Status> open() override { co_return Status(); }

  io::Task<Result<Connection>> replace(std::uint16_t stream, Status lost) override {
    if (stopped_) co_return Status(ErrorCode::kCancelled, "not needed");
    if (!connects_) {
      io::Io& io = (sends_ ? all_.sender_ : all_.receiver_).streams[stream]->io();
      std::optional<Connection> next = co_await all_.waiting_[stream].pop(io);
      if (!next) co_return Status(ErrorCode::kCancelled, "not needed");
      co_return std::move(*next);
    }
    if (!all_.breakage_.may_connect) co_return lost;
    ++all_.made_again_;
    Ends ends = all_.make(stream, ++all_.generations_[stream]);
    Connection& theirs = sends_ ? ends.receiving : ends.sending;
    (void)all_.waiting_[stream].push(std::move(theirs));
    co_return std::move(sends_ ? ends.sending : ends.receiving);
  }

  void stop() override {
    stopped_ = true;
    if (connects_) return;
    for (io::Channel<Connection>& waiting : all_.waiting_) waiting.close_and_clear();
  }

 private:
  BreakableConnections& all_;
  const bool sends_;
  const bool connects_;
  std::atomic<bool> stopped_{false};
};

BreakableConnections::BreakableConnections(transfer::Session& sender, transfer::Session& receiver,
                                           Breakage breakage)
    : sender_(sender),
      receiver_(receiver),
      breakage_(breakage),
      waiting_(sender.parameters.streams),
      generations_(sender.parameters.streams) {
  halves_[0] = std::make_unique<Half>(*this, true, breakage.sender_connects);
  halves_[1] = std::make_unique<Half>(*this, false, !breakage.sender_connects);
}

io::Io& BreakableConnections::worker_of(transfer::Session& session, std::size_t stream) const {
  io::Runtime& runtime = session.runtime();
  const std::size_t shift = &session == &sender_ ? 0 : 1;
  return runtime.worker((stream + shift) % runtime.worker_count());
}

BreakableConnections::Ends BreakableConnections::make(std::size_t stream,
                                                      std::uint32_t generation) {
  auto [sending, receiving] =
      transport::make_memory_streams(worker_of(sender_, stream), worker_of(receiver_, stream));
  auto breaking = std::make_shared<Breaking>(std::move(sending), *this, generation == 0);
  return {{std::move(breaking), generation}, {std::move(receiving), generation}};
}

void BreakableConnections::open() {
  for (std::size_t i = 0; i < sender_.parameters.streams; ++i) {
    Ends ends = make(i, 0);
    sender_.streams.push_back(
        std::make_unique<transfer::DataStream>(worker_of(sender_, i), std::move(ends.sending)));
    receiver_.streams.push_back(
        std::make_unique<transfer::DataStream>(worker_of(receiver_, i), std::move(ends.receiving)));
  }
  sender_.connections = halves_[0].get();
  receiver_.connections = halves_[1].get();
}

}  // namespace fgsync::testing
