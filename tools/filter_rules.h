// Rules about names, from the options that give them one by one (--include, --exclude) or in files
// (--include-from, --exclude-from).
#pragma once

#include <vector>

#include "fgsync/options.h"
#include "settings.h"

namespace fgsync::tools {

// In the order in which they are asked: those of the command line as they stand there, then those
// of variables, then those of the configuration. As in rsync, "+ PATTERN" and "- PATTERN" say for
// themselves what they are, and "!" forgets the rules before it, and those of lesser places. In
// files, lines that begin with # or ; say nothing. Throws CommandError (1) for what is no rule, for
// too many, and for files that cannot be read.
std::vector<FilterRule> read_filter_rules(const Settings& settings, bool ends_with_nul);

}  // namespace fgsync::tools
