// The production file system: Linux system calls behind the seam of file_system.h.
#pragma once

#include <memory>

#include "io/file_system.h"

namespace fgsync::io {

// Stateless and thread-safe; one instance serves the whole process and outlives every handle it
// gave out. All descriptors are close-on-exec. Failures carry the errno and say what was being done
// ("opening: ...").
std::unique_ptr<FileSystem> make_posix_file_system();
// The same for reading, but for symlinks, which are followed where directories and files are opened
// or looked at.
std::unique_ptr<FileSystem> make_file_system_through_links();

}  // namespace fgsync::io
