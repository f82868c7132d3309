// What a receipt must say of the tree that it stands in, by a reading of its own.
#pragma once

#include <set>
#include <string>
#include <tuple>

#include "disk.h"

namespace fgsync::sim {

// A file as a receipt knows it: path below the root, size, mtime.
using KnownFile = std::tuple<std::string, std::uint64_t, std::int64_t, std::uint32_t>;

// The regular files below the root.
std::set<KnownFile> files_below(const Disk& disk, const std::string& root);

// Of the receipt itself; 0 where there is none.
std::uint64_t receipt_bytes(const Disk& disk, const std::string& root);

// Files that are as the receipt says by size and mtime, and have other contents.
std::set<std::string> spoiled_files(const Disk& disk, const std::string& root);

// At any moment: of a file that is as the receipt says by size and mtime, it tells the contents;
// but of `rotted` ones it tells what they were. Empty, or what is wrong.
std::string check_receipt(const Disk& disk, const std::string& root,
                          const std::set<std::string>& rotted);

// After a run that ended well: it tells nothing of files that are not there, and of all that are,
// but `others`, which no run has made.
std::string check_settled_receipt(const Disk& disk, const std::string& root,
                                  const std::set<KnownFile>& others);

}  // namespace fgsync::sim
