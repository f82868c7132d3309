// --lock=FILE: a lock of the user's own on this host.
#pragma once

#include <string>

#include "fgsync/status.h"

namespace fgsync::tools {

// Holds the lock while it lives; the kernel drops it when the process dies. The file stays.
class LockFile {
 public:
  // Makes the file if it is missing. kLocked when another process holds it (flock(2), so flock(1)
  // is one that may). An empty path: no lock.
  static Result<LockFile> take(const std::string& path);
  LockFile(LockFile&& other) noexcept;
  LockFile& operator=(LockFile&&) = delete;
  ~LockFile();

 private:
  explicit LockFile(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace fgsync::tools
