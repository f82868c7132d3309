// Opening a name below a held directory without ever leaving it.
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <string>

namespace fgsync::io {

// Calls until it is no longer interrupted; -1 with errno on failure.
template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// One component below the directory, close-on-exec and never through a symlink; -1 with errno. By
// openat2(2) with RESOLVE_BENEATH where the process has it (Linux 5.6, and no seccomp profile from
// before), else by openat(2).
int open_beneath(int base_descriptor, const std::string& name, int flags, mode_t mode);

}  // namespace fgsync::io
