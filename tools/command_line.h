// From argv, the configuration and the environment to what the library is asked to do.
#pragma once

#include <string>
#include <vector>

#include "fgsync/options.h"
#include "settings.h"

namespace fgsync::tools {

struct Arguments {
  Settings settings;                   // options alone
  std::vector<std::string> locations;  // everything else, in order

  bool has(const std::string& key) const { return settings.contains(key); }
};

// Splits argv (without the program's name, which messages need). Throws CommandError for an unknown
// option or a missing value.
Arguments parse_arguments(const std::string& program, const std::vector<std::string>& words);

enum class ProgressMode : unsigned char { kAuto, kAlways, kNever, kJson };

struct OutputOptions {
  bool quiet = false;
  bool verbose = false;
  bool itemize = false;
  bool stats = false;
  bool json = false;
  ProgressMode progress = ProgressMode::kAuto;
  std::string log_file;  // empty: none
};

struct CommandLine {
  TransferOptions transfer;
  OutputOptions output;
  std::string lock_file;           // to be locked on this host while the run lasts; empty: none
  std::vector<std::string> notes;  // to be said once, before anything else
};

// Everything but the locations. Throws as understand().
TransferOptions understand_transfer(const Settings& settings);
OutputOptions understand_output(const Settings& settings);

// Understands settings and locations. Throws CommandError: status 1 for a request that makes no
// sense, 4 for one that this version does not offer. Nothing outside the process is touched, but
// that the files with rules are read which it names.
CommandLine understand(const Settings& settings, const std::vector<std::string>& locations);

}  // namespace fgsync::tools
