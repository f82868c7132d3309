#include "support/stream_damage.h"

#include <utility>

namespace fgsync::testing {
namespace {

using Kind = StreamDamage::Kind;

Status broken() { return Status(ErrorCode::kConnectionLost, "a connection that the test breaks"); }
Status forged() { return Status(ErrorCode::kProtocolError, "what does not authenticate"); }

// Takes what comes, to the end, as if nothing came.
template <typename Inner>
io::Task<void> swallow(Inner* stream) {
  while (true) {
    auto next = co_await stream->receive();
    if (!next.ok()) co_return;
  }
}

void flip(std::span<std::byte> bytes) {
  if (!bytes.empty()) bytes[bytes.size() / 3] ^= std::byte{0x10};
}

}  // namespace

class DamagingStreams::DamagedStream final : public transport::Stream {
 public:
  DamagedStream(DamagingStreams& all, std::unique_ptr<transport::Stream> stream)
      : all_(all), stream_(std::move(stream)) {}

  io::Task<Status> send(transport::FrameHeaderBytes header, Buffer payload) override {
    return stream_->send(header, std::move(payload));
  }
  io::Task<Result<transport::ReceivedFrame>> receive() override {
    Result<transport::ReceivedFrame> frame = co_await stream_->receive();
    if (!frame.ok() || !all_.strikes()) co_return frame;
    switch (all_.damage_.kind) {
      case Kind::kStall:
        co_await swallow(stream_.get());
        co_return broken();
      case Kind::kFlip:
        flip(frame->payload.bytes());
        co_return frame;
      case Kind::kFlipHeader:
        flip(frame->header);
        co_return frame;
      case Kind::kCut:
        if (frame->payload) frame->payload.resize(frame->payload.size() / 2);
        co_return frame;
      case Kind::kForged:
        stream_->shutdown();
        co_return forged();
      case Kind::kReset:
        break;
    }
    stream_->shutdown();
    co_return broken();
  }
  void shutdown() override { stream_->shutdown(); }
  std::uint64_t wire_bytes() const override { return stream_->wire_bytes(); }

 private:
  DamagingStreams& all_;
  const std::unique_ptr<transport::Stream> stream_;
};

// The stream below authenticates control messages, so none comes in that was changed.
class DamagingStreams::DamagedControlStream final : public transport::ControlStream {
 public:
  DamagedControlStream(DamagingStreams& all, std::unique_ptr<transport::ControlStream> stream)
      : all_(all), stream_(std::move(stream)) {}

  io::Task<Status> send(std::vector<std::byte> message) override {
    return stream_->send(std::move(message));
  }
  io::Task<Result<std::vector<std::byte>>> receive() override {
    Result<std::vector<std::byte>> message = co_await stream_->receive();
    if (!message.ok() || !all_.strikes()) co_return message;
    if (all_.damage_.kind == Kind::kStall) co_await swallow(stream_.get());
    stream_->shutdown();
    co_return all_.damage_.kind == Kind::kForged ? forged() : broken();
  }
  void shutdown() override { stream_->shutdown(); }

 private:
  DamagingStreams& all_;
  const std::unique_ptr<transport::ControlStream> stream_;
};

bool DamagingStreams::strikes() {
  const std::uint64_t number = ++come_;
  const bool struck = damage_.lasting ? number >= damage_.nth : number == damage_.nth;
  if (damage_.nth == 0 || !struck) return false;
  ++damaged_;
  return true;
}

std::unique_ptr<transport::Stream> DamagingStreams::wrap(
    std::unique_ptr<transport::Stream> stream) {
  if (damage_.of_control) return stream;
  return std::make_unique<DamagedStream>(*this, std::move(stream));
}

std::unique_ptr<transport::ControlStream> DamagingStreams::wrap(
    std::unique_ptr<transport::ControlStream> stream) {
  if (!damage_.of_control) return stream;
  return std::make_unique<DamagedControlStream>(*this, std::move(stream));
}

}  // namespace fgsync::testing
