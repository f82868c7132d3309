// A finished run as one JSON object, for --json. Its keys are fixed: scripts rely on them.
#pragma once

#include <string>
#include <vector>

#include "fgsync/options.h"
#include "fgsync/report.h"

namespace fgsync::tools {

// `command` is argv, the program's name included. One line with its end.
std::string json_report(const TransferReport& report, const TransferOptions& options,
                        const std::vector<std::string>& command);

}  // namespace fgsync::tools
