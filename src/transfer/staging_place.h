// Where files are staged that land in a directory of the target.
#pragma once

#include "storage/directory_tree.h"
#include "storage/staging_area.h"

namespace fgsync::transfer {

// The staging directory on the mount of `directory`. On the mount of the target's root it stands in
// the root, whichever directory asks first: there the next run looks for what a dead one has left.
// Blocks.
Result<storage::DirectoryReference> staging_for(io::FileSystem& files,
                                                storage::DirectoryTree& directories,
                                                storage::StagingArea& staging,
                                                const storage::DirectoryReference& directory);

}  // namespace fgsync::transfer
