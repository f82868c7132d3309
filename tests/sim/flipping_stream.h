// A data stream whose sender has bad memory: a bit of a frame, mostly of its payload, flips after
// the checksum was made and before it is sealed, so that only the checksum can notice.
#pragma once

#include <memory>

#include "random.h"
#include "transport/stream.h"

namespace fgsync::sim {

// `frames_until_flip` counts down over all streams of a session; at 0 the frame is flipped.
class FlippingStream final : public transport::Stream {
 public:
  FlippingStream(std::shared_ptr<transport::Stream> stream, Random& random,
                 std::int64_t& frames_until_flip)
      : stream_(std::move(stream)), random_(random), frames_until_flip_(frames_until_flip) {}

  io::Task<Status> send(transport::FrameHeaderBytes header, Buffer payload) override {
    if (payload.size() > 0 && frames_until_flip_-- == 0) {
      const std::span<std::byte> bytes = random_.percent(30) ? header : payload.bytes();
      bytes[random_.below(bytes.size())] ^= std::byte(1u << random_.below(8));
    }
    return stream_->send(header, std::move(payload));
  }
  io::Task<Result<transport::ReceivedFrame>> receive() override { return stream_->receive(); }
  void shutdown() override { stream_->shutdown(); }
  std::uint64_t wire_bytes() const override { return stream_->wire_bytes(); }

 private:
  const std::shared_ptr<transport::Stream> stream_;
  Random& random_;
  std::int64_t& frames_until_flip_;
};

}  // namespace fgsync::sim
