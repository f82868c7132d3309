#include "io/posix_open.h"

#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "base/assert.h"
#include "io/file_system.h"

namespace fgsync::io {
namespace {

int open_with_resolve(int base, const char* name, int flags, mode_t mode, std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = resolve;
  return static_cast<int>(::syscall(SYS_openat2, base, name, &how, sizeof how));
}

// Seccomp profiles that are older than the call answer EPERM in its place, which a real opening can
// get as well; hence a probe with one that can't.
bool has_openat2() {
  static const bool available = [] {
    const int descriptor =
        open_with_resolve(AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
    if (descriptor >= 0) ::close(descriptor);
    return descriptor >= 0;
  }();
  return available;
}

}  // namespace

// For a single component O_NOFOLLOW says nearly the same as openat2, so that little is lost where
// that is missing.
int open_beneath(int base_descriptor, const std::string& name, int flags, mode_t mode) {
  FGSYNC_ASSERT(is_single_component(name));
  flags |= O_CLOEXEC | O_NOFOLLOW;
  if (!has_openat2()) {
    return uninterrupted([&] { return ::openat(base_descriptor, name.c_str(), flags, mode); });
  }
  // EAGAIN: a rename raced with the lookup. Also what O_NONBLOCK gives for a file under a lease,
  // hence the bound.
  constexpr int kAttemptsMax = 100;
  constexpr std::uint64_t kResolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  int descriptor = -1;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    descriptor = uninterrupted(
        [&] { return open_with_resolve(base_descriptor, name.c_str(), flags, mode, kResolve); });
    if (descriptor >= 0 || errno != EAGAIN) break;
  }
  return descriptor;
}

}  // namespace fgsync::io
