// One run from an understood command line to its exit status, with everything that is said about
// it.
#pragma once

#include <string>
#include <vector>

#include "command_line.h"
#include "console.h"
#include "fgsync/transfer.h"

namespace fgsync::tools {

// replicate(), or a stand-in for tests of what is said.
using Replicate = TransferReport (*)(const TransferOptions&, Observer&, CancelToken&);

// `words` is argv, the program's name included, for the report and the log. What was asked for goes
// to the descriptor `standard_output`, all else to `console`.
int run(const CommandLine& command, const std::vector<std::string>& words, Replicate replicate,
        int standard_output, Console& console, CancelToken& cancel);

}  // namespace fgsync::tools
