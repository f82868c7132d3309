// What was asked for, before it is understood: one value per option, with where it came from.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace fgsync::tools {

// Later places win over earlier ones.
enum class Place : unsigned char { kFile, kVariable, kOption };

struct Setting {
  std::string value;  // as given; "true" for a bare switch
  Place place = Place::kOption;
  std::string
      origin;  // for messages, escaped: "--streams=x", "FGSYNC_STREAMS=x", "FILE:3: streams = x"
  std::vector<std::string> list = {};  // Takes::kList: every value that the place gives
  // Of each of these: its number among all values that the place gives. The less, the earlier.
  std::vector<std::size_t> positions = {};
};

// By OptionRow::key().
using Settings = std::map<std::string, Setting>;

// Why a command line cannot be run. Thrown; printed by main as one line.
struct CommandError {
  int exit_status = 1;
  std::string message;
};

}  // namespace fgsync::tools
