// What an entry carries besides its contents, and setting it in the right order: owner first (chown
// drops setuid), then mode, then time. The owner only where FileSystem::may_set_owner().
#pragma once

#include <cstdint>
#include <string>

#include "fgsync/status.h"
#include "io/file_system.h"

namespace fgsync::storage {

struct Metadata {
  std::uint32_t mode = 0;  // 07777
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  io::FileTime mtime;
};

// On an open file or directory; what is right already costs no call.
Status apply_metadata(io::FileSystem& files, const io::FileHandle& file, const Metadata& metadata);
// On a symlink itself: owner and mtime.
Status apply_symlink_metadata(io::FileSystem& files, const io::FileHandle& directory,
                              const std::string& name, const Metadata& metadata);
// Brings what differs in line, on an existing file or directory; true if anything was changed.
Result<bool> update_metadata_at(io::FileSystem& files, const io::FileHandle& directory,
                                const std::string& name, const io::FileStatus& present,
                                const Metadata& wanted, bool with_mtime);

}  // namespace fgsync::storage
