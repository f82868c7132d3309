#include "lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "fgsync/lock_holder.h"

namespace fgsync::tools {

Result<LockFile> LockFile::take(const std::string& path) {
  if (path.empty()) return LockFile(-1);
  LockFile lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666));
  if (lock.descriptor_ < 0) {
    return Status(ErrorCode::kUnusable,
                  Status::from_errno(errno, "opening the lock").with_context(path).message());
  }
  if (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK) {
    return Status(ErrorCode::kLocked,
                  path + ": another run holds the lock" + lock_holder(lock.descriptor_));
  }
  return Status(ErrorCode::kUnusable,
                Status::from_errno(errno, "locking").with_context(path).message());
}

LockFile::LockFile(LockFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

LockFile::~LockFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace fgsync::tools
