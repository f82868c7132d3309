// The time between attempts to connect again: 100 ms at first, doubled each time up to 5 s, and
// each shortened by up to a half by chance, so that many who lost one link do not come back at the
// same moment.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "io/io.h"

namespace fgsync::transfer {

class Backoff {
 public:
  explicit Backoff(io::Environment& environment) : environment_(environment) {}

  // How long to wait before the next attempt.
  io::Duration next() {
    const io::Duration longest = wait_;
    wait_ = std::min<io::Duration>(2 * wait_, kLongest);
    std::array<std::byte, 2> chance;
    environment_.random_bytes(chance);
    const int part = std::to_integer<int>(chance[0]) << 8 | std::to_integer<int>(chance[1]);
    return longest - longest / 2 * part / 65536;
  }

  // The last attempt was worth it: as at first.
  void reset() { wait_ = kShortest; }

 private:
  static constexpr std::chrono::milliseconds kShortest{100};
  static constexpr std::chrono::seconds kLongest{5};

  io::Environment& environment_;
  io::Duration wait_ = kShortest;
};

}  // namespace fgsync::transfer
