#include "selection/filter_rules.h"

#include <algorithm>

namespace fgsync::selection {

FilterRules::FilterRules(const std::vector<FilterRule>& rules) {
  rules_.reserve(rules.size());
  for (const FilterRule& rule : rules) rules_.push_back({rule.include, PathPattern(rule.pattern)});
}

bool FilterRules::leave_out(std::string_view path, bool is_directory) const {
  const auto first = std::find_if(rules_.begin(), rules_.end(), [&](const Rule& rule) {
    return rule.pattern.matches(path, is_directory);
  });
  return first != rules_.end() && !first->include;
}

}  // namespace fgsync::selection
