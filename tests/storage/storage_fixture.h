// What the tests of the file system and of the storage layer share: a directory, the production
// file system, and a handle on the directory.
#pragma once

#include <dirent.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "gtest/gtest.h"
#include "io/posix_file_system.h"
#include "support/temporary_directory.h"

namespace fgsync::testing {

class StorageFixture : public ::testing::Test {
 protected:
  StorageFixture() { ::chmod(directory.path().c_str(), 0755); }

  io::FileHandle open_root() { return open_path(directory.path()); }
  io::FileHandle open_path(const std::string& path) {
    auto handle = files->open_path(path);
    EXPECT_TRUE(handle.ok()) << handle.status().message();
    return handle.ok() ? std::move(*handle) : io::FileHandle();
  }
  io::FileHandle open_file(const std::string& name, io::OpenMode mode) {
    auto handle = files->open_file(root, name, mode);
    EXPECT_TRUE(handle.ok()) << handle.status().message();
    return handle.ok() ? std::move(*handle) : io::FileHandle();
  }

  TemporaryDirectory directory;
  const std::unique_ptr<io::FileSystem> files = io::make_posix_file_system();
  const io::FileHandle root = open_root();
};

// Root is refused nothing; inside of its scope, this process is an ordinary user.
class UnprivilegedScope {
 public:
  static constexpr uid_t kNobody = 65534;
  UnprivilegedScope() : was_root_(::geteuid() == 0) {
    if (was_root_) become(kNobody);
  }
  ~UnprivilegedScope() {
    if (was_root_) become(0);
  }
  UnprivilegedScope(const UnprivilegedScope&) = delete;
  UnprivilegedScope& operator=(const UnprivilegedScope&) = delete;

 private:
  static void become(uid_t user) { EXPECT_EQ(::seteuid(user), 0); }

  const bool was_root_;
};

inline std::size_t open_descriptors() {
  DIR* stream = ::opendir("/proc/self/fd");
  std::size_t count = 0;
  while (::readdir(stream) != nullptr) ++count;
  ::closedir(stream);
  return count;
}

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace fgsync::testing
