// Removing a whole tree.
#pragma once

#include <functional>
#include <string>

#include "fgsync/status.h"
#include "io/file_system.h"

namespace fgsync::storage {

// Called for each entry of a tree that something is done with; what it returns ends the work.
using TreeStep = std::function<Status()>;

// Removes what stands under the name, with everything below it, whatever the modes of its
// directories; OK if there is nothing. No symlink is followed, and nothing removed of what is
// mounted there: kUnusable. Needs memory for each directory, and
// none for files. Blocks.
Status remove_tree(io::FileSystem& files, const io::FileHandle& parent, const std::string& name,
                   const TreeStep& step);

}  // namespace fgsync::storage
