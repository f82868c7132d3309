// Settings from configuration files and from the environment.
//
// A file holds `name = value` lines, names being the long options without dashes. A switch may
// stand alone. Everything after the equals sign, blanks at both ends removed, is the value; there
// are no quotes. A line that starts with # says nothing.
#pragma once

#include <string>
#include <vector>

#include "settings.h"

namespace fgsync::tools {

// /etc/fgsync/config, then ~/.config/fgsync/config; the second is left out without a HOME.
std::vector<std::string> configuration_files();

// Adds the file's settings over `settings`. A missing file is none. Throws CommandError naming file
// and key.
void read_configuration_file(const std::string& path, Settings& settings);

// Adds FGSYNC_* variables over `settings`. An empty variable is none; unknown ones are left alone,
// since they may be another program's.
void read_variables(Settings& settings);

}  // namespace fgsync::tools
