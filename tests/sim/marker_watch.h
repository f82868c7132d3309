// Files that announce others come last: whichever of them stands at the target, all that it may
// name does. The list and the order are those of the manual, written down here once more.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "disk.h"

namespace fgsync::sim {

class MarkerWatch {
 public:
  // Names of files to be made that are markers.
  static const std::vector<std::string>& names();

  // Takes down what there is, before the first run. `target` need not be there.
  void begin(const Disk& source, const std::string& source_root, const Disk& target,
             const std::string& target_root);
  // Which marker stands there while something does not that must stand before it; empty: none. As
  // long as nothing has changed at the source.
  std::string check(const Disk& target) const;

 private:
  // Pointers last; before them the deeper first, and of one directory an index first.
  using Rank = std::tuple<bool, int, bool>;
  struct Entry {
    std::string path;
    Node wanted;
    bool is_marker = false;
    Rank rank;
    bool stood = false;  // from the beginning
  };
  void take_down(const Disk& source, const Node& node, const std::string& path, int depth);
  bool stands(const Disk& target, const Entry& entry) const;

  std::string target_root_;
  std::vector<Entry> entries_;
};

}  // namespace fgsync::sim
