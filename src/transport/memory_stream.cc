#include "transport/memory_stream.h"

#include <atomic>

#include "base/limits.h"
#include "io/sync.h"

namespace fgsync::transport {
namespace {

Status closed() { return Status(ErrorCode::kConnectionLost, "the stream was closed"); }

// Both directions of one pair; each end holds it and knows which one it sends on.
template <typename Item>
struct Road {
  io::Channel<Item> direction[2];
  std::atomic<std::uint64_t> bytes[2] = {};
};

// What a socket does at shutdown(2), for the end that calls it: it receives nothing more, and its
// peer gets what was sent before and then the end.
template <typename Item>
void close_end(Road<Item>& road, int outgoing) {
  road.direction[outgoing].close();
  road.direction[1 - outgoing].close_and_clear();
}

class MemoryStream final : public Stream {
 public:
  MemoryStream(io::Io& io, std::shared_ptr<Road<ReceivedFrame>> road, int outgoing)
      : io_(io), road_(std::move(road)), outgoing_(outgoing) {}
  ~MemoryStream() override { shutdown(); }

  io::Task<Status> send(FrameHeaderBytes header, Buffer payload) override {
    const std::uint64_t bytes = header.size() + payload.size();
    ReceivedFrame frame;
    frame.header = header;
    frame.payload = std::move(payload);
    if (!road_->direction[outgoing_].push(std::move(frame))) co_return closed();
    road_->bytes[outgoing_].fetch_add(bytes, std::memory_order_relaxed);
    co_return Status();
  }

  io::Task<Result<ReceivedFrame>> receive() override {
    std::optional<ReceivedFrame> frame = co_await road_->direction[1 - outgoing_].pop(io_);
    if (!frame) co_return closed();
    co_return std::move(*frame);
  }

  void shutdown() override { close_end(*road_, outgoing_); }

  std::uint64_t wire_bytes() const override {
    return road_->bytes[0].load(std::memory_order_relaxed) +
           road_->bytes[1].load(std::memory_order_relaxed);
  }

 private:
  io::Io& io_;
  const std::shared_ptr<Road<ReceivedFrame>> road_;
  const int outgoing_;
};

class MemoryControlStream final : public ControlStream {
 public:
  MemoryControlStream(io::Io& io, std::shared_ptr<Road<std::vector<std::byte>>> road, int outgoing)
      : io_(io), road_(std::move(road)), outgoing_(outgoing) {}
  ~MemoryControlStream() override { shutdown(); }

  io::Task<Status> send(std::vector<std::byte> message) override {
    if (message.size() > limits::kControlMessageBytesMax) {
      co_return Status(ErrorCode::kInvalidArgument, "a control message is too large");
    }
    if (!road_->direction[outgoing_].push(std::move(message))) co_return closed();
    co_return Status();
  }

  io::Task<Result<std::vector<std::byte>>> receive() override {
    std::optional<std::vector<std::byte>> message =
        co_await road_->direction[1 - outgoing_].pop(io_);
    if (!message) co_return closed();
    co_return std::move(*message);
  }

  void shutdown() override { close_end(*road_, outgoing_); }

 private:
  io::Io& io_;
  const std::shared_ptr<Road<std::vector<std::byte>>> road_;
  const int outgoing_;
};

}  // namespace

std::pair<std::unique_ptr<Stream>, std::unique_ptr<Stream>> make_memory_streams(io::Io& first,
                                                                                io::Io& second) {
  auto road = std::make_shared<Road<ReceivedFrame>>();
  return {std::make_unique<MemoryStream>(first, road, 0),
          std::make_unique<MemoryStream>(second, road, 1)};
}

std::pair<std::unique_ptr<ControlStream>, std::unique_ptr<ControlStream>>
make_memory_control_streams(io::Io& first, io::Io& second) {
  auto road = std::make_shared<Road<std::vector<std::byte>>>();
  return {std::make_unique<MemoryControlStream>(first, road, 0),
          std::make_unique<MemoryControlStream>(second, road, 1)};
}

}  // namespace fgsync::transport
