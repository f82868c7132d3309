// The texts of fgsyncctl --help.
#pragma once

#include <string>

namespace fgsync::tools {

// No line longer than 80 columns.
std::string control_help_text();
std::string verify_help_text();

}  // namespace fgsync::tools
