// Streams that damage what comes over them: the Nth frame or message of a session, counted over all
// of its ends.
#pragma once

#include <atomic>
#include <memory>

#include "transport/stream.h"

namespace fgsync::testing {

struct StreamDamage {
  enum class Kind : std::uint8_t {
    kReset,       // the connection breaks, of what comes then nothing arrives
    kStall,       // nothing arrives any more, and nobody is told
    kFlip,        // a bit of a frame's payload is another
    kFlipHeader,  // a bit of a frame's header is another
    kCut,         // half of it is missing
    kForged,      // it does not authenticate
  };
  Kind kind = Kind::kReset;
  bool of_control = false;  // of control messages, otherwise of data frames
  std::uint64_t nth = 0;    // from 1; 0: never
  bool lasting = false;     // all that come behind it as well
};

// Puts itself between the streams of one session and who receives from them. Must outlive them.
class DamagingStreams {
 public:
  explicit DamagingStreams(const StreamDamage& damage) : damage_(damage) {}

  std::unique_ptr<transport::Stream> wrap(std::unique_ptr<transport::Stream> stream);
  std::unique_ptr<transport::ControlStream> wrap(std::unique_ptr<transport::ControlStream> stream);
  // How many frames or messages have been damaged. Any thread.
  std::uint64_t damaged() const { return damaged_.load(); }

 private:
  class DamagedStream;
  class DamagedControlStream;
  // Whether the frame or message that has just come is to be damaged.
  bool strikes();

  const StreamDamage damage_;
  std::atomic<std::uint64_t> come_{0};
  std::atomic<std::uint64_t> damaged_{0};
};

}  // namespace fgsync::testing
