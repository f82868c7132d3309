// The names in a directory, one after the other.
#pragma once

#include <functional>
#include <string>

#include "fgsync/status.h"
#include "io/file_system.h"

namespace fgsync::storage {

// Calls `visit` for each name but "." and "..", until one call fails, whose status it returns.
// Removing names meanwhile is fine: readdir(3) leaves open only whether names added meanwhile
// appear. Blocks.
Status for_each_name(io::FileSystem& files, const io::FileHandle& directory,
                     const std::function<Status(const std::string& name)>& visit);

}  // namespace fgsync::storage
