// The paths that a list names (--files-from): of a source that is walked by them nothing else is
// looked at but the directories on the way.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "selection/filter_rules.h"

namespace fgsync::selection {

// Constant once it is made, and without entries of its own for directories: the paths are sorted so
// that those below a directory stand together behind it.
class ListedPaths {
 public:
  // Each as parse_listed_path() gives it: relative to the source, empty for the source itself, with
  // a slash at the end where what is in the directory is meant as well. Any order; several times
  // the same is once.
  explicit ListedPaths(std::vector<std::string> paths);

  // Drops those that rules leave out whatever stands there. `prefix`: see FilterRules.
  void leave_out(const FilterRules& rules, const std::string& prefix);

  // The paths below one directory.
  struct Branch {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t offset = 0;  // where the next component begins in each
    bool empty() const { return begin == end; }
  };
  // What is said of one name in a directory.
  struct Child {
    std::string name;
    bool is_listed = false;   // itself, rather than merely on the way to others
    bool with_names = false;  // the names in it too
    Branch below;             // what is listed in it
    std::size_t next = 0;     // where the branch goes on behind it
  };

  // The source itself, for which the name is empty.
  Child root() const;
  // The first in a branch that is not empty; `branch.begin = child.next` leads to the others.
  Child first_of(const Branch& branch) const;
  std::optional<Child> find(const Branch& branch, std::string_view name) const;
  // Relative to the source, without a slash at the end.
  std::string path(std::size_t index) const;

 private:
  std::string_view component(std::size_t index, std::size_t offset) const;
  Child child_at(const Branch& branch, std::size_t begin) const;

  std::vector<std::string> paths_;
};

}  // namespace fgsync::selection
