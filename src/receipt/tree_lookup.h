// What stands at a path below a directory, for paths that come in some order: neighbours share the
// opening of their directory. No symlink is followed.
#pragma once

#include <string>

#include "fgsync/status.h"
#include "io/file_system.h"

namespace fgsync::receipt {

// Not thread-safe. Blocks.
class TreeLookup {
 public:
  // `root` must outlive it.
  TreeLookup(io::FileSystem& files, const io::FileHandle& root) : files_(files), root_(root) {}

  // `path` as is_possible_path() has it. kNotFound also where one of its directories is missing or
  // is none.
  Result<io::FileStatus> stat(const std::string& path);

 private:
  Status enter(const std::string& directory);

  io::FileSystem& files_;
  const io::FileHandle& root_;
  std::string directory_;  // that is open; empty: the root
  io::FileHandle handle_;
};

}  // namespace fgsync::receipt
