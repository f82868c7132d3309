// One SOURCE argument on the sender's side: the tree it names and how its entries are called at the
// target.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "storage/directory_tree.h"

namespace fgsync::transfer {

struct SourceTree {
  std::string display;  // absolute path of the directory behind id 0 of `directories`
  std::string prefix;   // path at the target of that directory: empty for the target's root itself
  // The manifest's number of that directory: 0 when it stands for the target's root.
  std::uint64_t root_entry = 0;
  std::shared_ptr<storage::DirectoryTree> directories;

  // What people call an entry of a directory of this tree, on the source's side.
  std::string display_path(std::uint64_t directory, const std::string& name) const {
    std::string relative = directories->path_of(directory, name);
    if (relative.empty()) return display;
    return display == "/" ? "/" + relative : display + "/" + relative;
  }
  // Its path relative to the target's root.
  std::string target_path(std::uint64_t directory, const std::string& name) const {
    std::string relative = directories->path_of(directory, name);
    if (prefix.empty()) return relative;
    return relative.empty() ? prefix : prefix + "/" + relative;
  }
};

}  // namespace fgsync::transfer
