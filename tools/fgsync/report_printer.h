// A finished run in words: its last line, its errors, and the table behind --stats.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "command_line.h"
#include "fgsync/options.h"
#include "fgsync/report.h"

namespace fgsync::tools {

// Errors on a console; a log holds all that were kept.
inline constexpr std::size_t kErrorsShownMax = 20;

// "replicated 3.8 GB (39 files, 2 unchanged) in 3.1 s: 1.2 GB/s, 4 streams tcp aes128-gcm, limited
// by: link".
std::string final_line(const TransferReport& report, const TransferOptions& options);

// "fgsync: PATH: doing: why", at most `shown_max` of them and then how many more there are, and at
// the end why the session ended early, if it did. Escaped.
std::vector<std::string> error_lines(const TransferReport& report, std::size_t shown_max);

// The resolved mapping and what would be changed: the lines of --dry-run. Escaped.
std::vector<std::string> dry_run_lines(const TransferReport& report, const CommandLine& command);

// Several lines, the last with its end.
std::string stats_table(const TransferReport& report);

// What the stage spent on the side where it happens: up to kSend at the source, after it at the
// target.
const StageFigures& figures_of(const TransferReport& report, Stage stage);

}  // namespace fgsync::tools
