// Rules about names, as rsync has them: the first one whose pattern matches an entry decides
// whether it belongs to the tree; one that no rule is about does.
#pragma once

#include <string_view>
#include <vector>

#include "fgsync/options.h"
#include "selection/path_pattern.h"

namespace fgsync::selection {

// Constant after construction.
class FilterRules {
 public:
  // Patterns within limits::kPatternBytesMax.
  explicit FilterRules(const std::vector<FilterRule>& rules);

  // Whether an entry is left out, with all that is below it. `path` is relative to the root of the
  // transfer, which is the target's root; above an entry that is asked about nothing is left out.
  bool leave_out(std::string_view path, bool is_directory) const;
  bool empty() const { return rules_.empty(); }

 private:
  struct Rule {
    bool include;
    PathPattern pattern;
  };
  std::vector<Rule> rules_;
};

}  // namespace fgsync::selection
