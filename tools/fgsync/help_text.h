// The texts of --help and of a command line that lacks its arguments.
#pragma once

#include <string>

namespace fgsync::tools {

// Grouped as the manual, no line longer than 80 columns.
std::string help_text();

// What is missing and how the command is written, without the last line's end.
std::string usage_hint(bool source_missing);

}  // namespace fgsync::tools
