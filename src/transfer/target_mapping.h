// Where the sources land, decided on the host that has the target.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/io.h"
#include "wire/message.h"

namespace fgsync::transfer {

struct ResolvedTarget {
  std::string root;    // absolute path of the directory that everything lands in
  bool exists = true;  // false only where it was not to be made
  // The root as it was typed: a symlink to it may be what is switched.
  std::string typed_root;
  bool is_new = false;  // it has been made now, or would be
  wire::TargetAccept accept;
  // What the sender may put directly into the root, by name; everything if the contents of its one
  // directory stand there. A sender that was asked for one file must not bring another.
  std::map<std::string, wire::EntryType> expected;
};

// Which directories are made that are missing.
enum class RootMaking : std::uint8_t {
  kAll,
  kAboveRoot,  // the target switches as a whole, and gets its name at the end
  kNone,       // a dry run
};

// Applies the rules of "what lands where", makes the target directory where it is missing (its
// parents only if asked; or as `making` says), and refuses a mapping of a tree into itself.
// kUnusable with the reason; kInvalidArgument for two sources of one name. Blocks.
Result<ResolvedTarget> resolve_target(io::Environment& environment, const std::string& target,
                                      const std::vector<wire::SourceDescription>& sources,
                                      bool make_parents, RootMaking making);
// A single file is switched by its rename.
bool lands_as_tree(const std::vector<wire::SourceDescription>& sources);

}  // namespace fgsync::transfer
