// fgsyncctl verify, from its words to its exit status.
#pragma once

#include <string>
#include <vector>

#include "console.h"
#include "fgsync/verify.h"

namespace fgsync::tools {

// `words` is argv whole. What was asked for goes to the descriptor `standard_output`, all else to
// `console`. Throws CommandError for a command line that makes no sense.
int run_verify(const std::vector<std::string>& words, int standard_output, Console& console,
               CancelToken& cancel);

}  // namespace fgsync::tools
