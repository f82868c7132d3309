// A finished run as one JSON object, for --json. Its keys are fixed: scripts rely on them.
#pragma once

#include <string>
#include <vector>

#include "fgsync/options.h"
#include "fgsync/report.h"

namespace fgsync::tools {

// `command` is argv, the program's name included. One line with its end. Text that is not UTF-8
// (RFC 8259, section 8.1, allows nothing else) stands as {"bytes_base64": ..., "escaped": ...}.
std::string json_report(const TransferReport& report, const TransferOptions& options,
                        const std::vector<std::string>& command);

// "source_changed".
const char* error_code_name(ErrorCode code);

// RFC 4648, section 4.
std::string base64(std::string_view bytes);

}  // namespace fgsync::tools
