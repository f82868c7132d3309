// Follows a target that is published as a whole: at any moment, and after any power cut, it is one
// of the trees that it was made to be, and nothing in between.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "disk.h"

namespace fgsync::sim {

class TreeWatch {
 public:
  explicit TreeWatch(std::string root) : root_(std::move(root)) {}
  // The directory beside the target in which new trees are made.
  static std::string workshop_of(const std::string& root);
  static std::string new_tree_of(const std::string& root) { return workshop_of(root) + "/tree"; }

  // Before the first run, and after a power cut.
  void begin(const Disk& disk);
  // After a change there. True if the target is another tree now than it was; that is a whole one,
  // the caller has looked.
  bool has_switched(const Disk& disk);
  // Why the target is none of the trees that it ever was; empty: it is one.
  std::string check(const Disk& disk) const;
  bool is_in_workshop(const Disk& disk, const Node& node) const;

 private:
  std::string text_of(const Disk& disk) const;

  const std::string root_;
  std::uint64_t root_inode_ = 0;  // 0: there is none
  std::set<std::string> trees_;
};

}  // namespace fgsync::sim
