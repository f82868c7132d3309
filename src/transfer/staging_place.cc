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
  if (status->mount != root_status->mount) return staging.on_mount(status->mount, directory);
  auto in_root = staging.on_mount(status->mount, *root);
  if (in_root.ok() || in_root.status().code() == ErrorCode::kNoSpace) return in_root;
  // Without a state directory no file can be replaced: one error, not one for each.
  return Status(ErrorCode::kUnusable, in_root.status().message(), in_root.status().system_errno());
}

}  // namespace fgsync::transfer
