#include "transfer/staging_place.h"

namespace fgsync::transfer {

Result<storage::DirectoryReference> staging_for(io::FileSystem& files,
                                                storage::DirectoryTree& directories,
                                                storage::StagingArea& staging,
                                                const storage::DirectoryReference& directory) {
  auto root = directories.open(0);
  if (!root.ok()) return root.status();
  Result<io::FileStatus> root_status = files.stat(**root);
  if (!root_status.ok()) return root_status.status();
  Result<io::FileStatus> status = files.stat(*directory);
  if (!status.ok()) return status.status();
  return staging.on_mount(status->mount, status->mount == root_status->mount ? *root : directory);
}

}  // namespace fgsync::transfer
