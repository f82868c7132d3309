// Whether a symlink stays in its tree, by what it says.
#pragma once

#include <cstddef>
#include <string_view>

namespace fgsync::selection {

// rsync's judgement for --safe-links: absolute targets lead out, those that climb higher than the
// tree's top, and those with a ".." behind other components or at the end of several. `depth`:
// how many directories of the tree the symlink stands in.
bool leads_out(std::string_view target, std::size_t depth);

}  // namespace fgsync::selection
