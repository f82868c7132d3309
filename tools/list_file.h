// Files that list things, one to a line.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fgsync::tools {

struct ListedLine {
  std::string text;
  std::size_t number = 0;  // from 1
  bool is_comment() const { return text.front() == '#' || text.front() == ';'; }
};

// The lines of FILE, "-" being standard input, that are not empty: each ends with a newline or a
// carriage return, with `ends_with_nul` with a NUL instead. At most `bytes_max` of them. Throws
// CommandError (1) where it cannot be read or goes past that, and where a line without a NUL at its
// end has one inside.
std::vector<ListedLine> read_list_file(const std::string& file, bool ends_with_nul,
                                       std::size_t bytes_max);

// The paths of --files-from, as parse_listed_path() reads them; comments are none. Throws as above,
// and for a path that leads out of the source.
std::vector<std::string> read_listed_paths(const std::string& file, bool ends_with_nul);

}  // namespace fgsync::tools
