// Markers: files and symlinks that announce that others are there. A reader that finds one relies
// on everything that it may name, so they are published after all else.
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <vector>

#include "selection/path_pattern.h"
#include "wire/message.h"

namespace fgsync::transfer {

class Markers {
 public:
  // `patterns`: besides our own list, rsync's patterns of a name or a path (--last).
  explicit Markers(const std::vector<std::string>& patterns);

  // `path_of` gives the entry's path below the target's root; it is asked only where a pattern
  // needs it. Both sides come to the same answer.
  template <typename PathOf>
  bool contains(const wire::ManifestEntry& entry, PathOf path_of) const {
    if (entry.type == wire::EntryType::kDirectory) return false;
    return is_known(entry) || is_named(entry.name) || (!paths_.empty() && is_at(path_of()));
  }

 private:
  static bool is_known(const wire::ManifestEntry& entry);
  bool is_named(const std::string& name) const;
  bool is_at(const std::string& path) const;

  std::vector<selection::PathPattern> names_;
  std::vector<selection::PathPattern> paths_;
};

// Markers are published in the order of this: what stands deeper first, of one depth an index
// before what says that all is there, and what says which of the others is the latest at the very
// end.
struct MarkerRank {
  bool is_pointer = false;
  std::size_t height = 0;  // the less, the deeper
  bool says_done = false;
  auto operator<=>(const MarkerRank&) const = default;
};
MarkerRank rank_of(const wire::ManifestEntry& entry, const std::string& path);

}  // namespace fgsync::transfer
