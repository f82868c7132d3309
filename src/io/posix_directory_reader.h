// A directory's names straight from getdents64(2), a buffer at a time, so that a directory of
// millions of names costs no more memory than one of ten.
#pragma once

#include <dirent.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "fgsync/status.h"
#include "io/file_system.h"

namespace fgsync::io {

class PosixDirectoryReader : public DirectoryReader {
 public:
  // Reopens the directory: the position of a listing belongs to the open description, which others
  // share.
  static Result<std::unique_ptr<DirectoryReader>> open(int directory_descriptor);

  explicit PosixDirectoryReader(int descriptor) : descriptor_(descriptor) {}
  ~PosixDirectoryReader() override;
  PosixDirectoryReader(const PosixDirectoryReader&) = delete;
  PosixDirectoryReader& operator=(const PosixDirectoryReader&) = delete;

  Result<bool> next(std::size_t count, std::vector<DirectoryEntry>& entries) override;

 private:
  // About 2,000 names of ordinary length; the kernel's own readdir(3) buffer in glibc is 32 KiB.
  static constexpr std::size_t kBufferBytes = 64 << 10;

  // False at the end of the directory.
  Result<bool> fill();

  const int descriptor_;
  std::size_t position_ = 0;
  std::size_t filled_ = 0;
  alignas(dirent64) char buffer_[kBufferBytes];
};

}  // namespace fgsync::io
