// How long what an interrupted run has left is kept for another run that may go on with it.
#pragma once

#include <chrono>

#include "io/io.h"

namespace fgsync::transfer {

inline constexpr std::chrono::hours kLeftoverKeptFor{7 * 24};

inline bool is_too_old(io::Environment& environment, const io::FileTime& last_used) {
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(environment.wall_clock().time_since_epoch());
  return now - std::chrono::seconds(last_used.seconds) > kLeftoverKeptFor;
}

}  // namespace fgsync::transfer
