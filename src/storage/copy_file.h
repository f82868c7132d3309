// Copying a file on this host, so that no name ever stands for less than the whole.
#pragma once

#include <string>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "storage/metadata.h"

namespace fgsync::storage {

// Where a copy is written before it gets its name; on the same file system.
struct AsidePlace {
  const io::FileHandle& directory;
  std::string name;  // what stands there makes way
  bool durable = true;
  bool read_back = false;  // compare what the disk has of the copy; only with `durable`
};

// Copies the regular file `name` of `from` to the same name in `to`, which may be the same
// directory: written aside, with that metadata, synced, renamed. kChecksumMismatch if it was read
// back and differs. Blocks.
Status copy_file(io::FileSystem& files, const io::FileHandle& from, const io::FileHandle& to,
                 const std::string& name, const Metadata& metadata, const AsidePlace& aside);

}  // namespace fgsync::storage
