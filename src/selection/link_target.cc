#include "selection/link_target.h"

#include <algorithm>

namespace fgsync::selection {

bool leads_out(std::string_view target, std::size_t depth) {
  if (target.empty() || target.front() == '/' || target.ends_with("/..")) return true;
  bool climbs = true;  // nothing but ".." so far
  for (std::size_t at = 0; at <= target.size();) {
    const std::size_t end = std::min(target.find('/', at), target.size());
    const std::string_view component = target.substr(at, end - at);
    at = end + 1;
    if (component.empty()) continue;
    if (component != "..") {
      climbs = false;
      continue;
    }
    if (!climbs || depth == 0) return true;
    --depth;
  }
  return false;
}

}  // namespace fgsync::selection
