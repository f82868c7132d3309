// FileStatus from statx(2), which gives nanosecond times, the mount id (Linux 5.8) and the
// alignment that direct I/O asks for (Linux 6.1) in one call.
#pragma once

#include "fgsync/status.h"
#include "io/file_system.h"

namespace fgsync::io {

// Of the open file or directory itself, with direct_alignment.
Result<FileStatus> status_of_descriptor(int descriptor);
// Of `path` relative to a directory's descriptor or AT_FDCWD; a symlink as last component is
// followed if asked.
Result<FileStatus> status_of_path(int base_descriptor, const char* path, bool follow);

// Root may use what is kept back for it.
Result<FileSystemSpace> space_of_descriptor(int descriptor);

// Whether the open file lives in memory only (tmpfs, ramfs): reserving room and direct I/O gain
// nothing there.
bool lives_in_memory(int descriptor);

// Whether the file system may be mounted on several hosts at once (network and FUSE file systems).
bool is_shared_between_hosts(int descriptor);

}  // namespace fgsync::io
