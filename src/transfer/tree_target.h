// What a target is that switches as a whole (--publish=tree): which name, in which directory, and
// how.
#pragma once

#include <string>

#include "fgsync/status.h"
#include "io/file_system.h"

namespace fgsync::transfer {

struct TreeTarget {
  enum class Kind {
    kDirectory,  // exchanged
    kMissing,    // gets its name
    kSymlink,    // to a directory: gets a new one beside that
  };
  Kind kind = Kind::kMissing;
  io::FileHandle parent;  // holds the directory
  std::string name;       // of the directory; with kSymlink of the one that the link leads to
  std::string path;       // of the directory
  // With kSymlink.
  std::string link_path;
  io::FileHandle link_parent;
  std::string link_name;
  std::string link_text;

  // Of the hidden directory beside it in which its new tree is made; the same for all directories
  // that a symlink leads to one after the other.
  std::string workshop_name() const;
  // The number that the name ends with; 1: the name is not one of numbered()'s.
  unsigned number() const;
  // `name` with that number instead of its own.
  std::string numbered(unsigned number) const;
  // What the link must say to lead to that name in `parent`: in the manner of what it says now,
  // where that names the directory itself.
  std::string link_text_for(io::FileSystem& files, const std::string& new_name) const;

 private:
  std::string stem() const;  // `name` without its number
};

// kUnusable for what is neither missing nor leads to a directory; kUnsupported for what cannot be
// switched: a mount point. `path` is as typed, and its parent is there. Blocks.
Result<TreeTarget> find_tree_target(io::FileSystem& files, const std::string& path);

}  // namespace fgsync::transfer
