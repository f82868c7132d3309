// FGSYNC_ASSERT: for mistakes of the programmer only, on in every build. Input from a peer, a disk
// or a user never reaches it: that is checked and answered with a Status.
#pragma once

namespace fgsync {

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace fgsync

#define FGSYNC_ASSERT(expression)                                  \
  do {                                                             \
    if (!(expression)) [[unlikely]] {                              \
      ::fgsync::assertion_failed(#expression, __FILE__, __LINE__); \
    }                                                              \
  } while (false)
