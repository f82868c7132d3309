// What stands below a directory, in a form that compares and prints.
#pragma once

#include <map>
#include <ostream>
#include <string>

namespace fgsync::testing {

struct ListedEntry {
  char type = '?';  // f, d, l, or ? for anything else
  unsigned mode = 0;
  long long mtime_seconds = 0;
  long mtime_nanoseconds = 0;
  std::string contents;  // of a file; where a symlink leads
  bool operator==(const ListedEntry&) const = default;
};

// For failure messages: long contents by their size alone.
void PrintTo(const ListedEntry& entry, std::ostream* out);

// By path relative to `directory`; the directory itself is ".". Follows no symlink. A receipt, and
// the state directory that holds nothing else, is left out: whatever else a run leaves behind is
// found.
std::map<std::string, ListedEntry> list_tree(const std::string& directory);

// Only the regular files, with their contents.
std::map<std::string, std::string> list_files(const std::string& directory);

}  // namespace fgsync::testing
