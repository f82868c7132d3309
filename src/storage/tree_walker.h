// Walks a source tree and yields its entries in batches, each directory before what is in it, so
// that sending starts while the walk goes on. Depth first with an explicit stack: neither depth nor
// breadth costs more than a number per pending directory, and a directory of any size streams
// through unsorted. The state directory
// (".fgsync") is never part of a tree, at any depth.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "storage/directory_tree.h"

namespace fgsync::storage {

inline constexpr const char* kStateDirectoryName = ".fgsync";

struct WalkedEntry {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;
  std::string name;
  io::FileStatus status;
  std::string symlink_target;  // symlinks
};

// Something that could not be walked. The path is relative to the root, raw.
struct WalkError {
  std::string path;
  Status status;           // kNotFound: it vanished between listing and looking
  bool directory = false;  // its contents are missing from the walk: the walk is incomplete
};

// Not thread-safe; next() blocks (call it inside a blocking job). Directories are entered into
// `tree`, which must outlive the walker.
class TreeWalker {
 public:
  TreeWalker(io::FileSystem& files, DirectoryTree& tree, std::uint64_t first_id);

  // Walks what is below a directory of the tree that is already known (the root, or an entry added
  // by hand).
  void add_directory(std::uint64_t id);
  // Next id to be given; for entries that the caller adds by hand.
  std::uint64_t take_id() { return next_id_++; }

  // Appends up to `count` entries and errors, fewer or none when that many directories were looked
  // into; false, with nothing appended, at the end of the walk. Regular files, directories and
  // symlinks come as entries; other types as entries too (the caller decides). Trouble goes to
  // `errors` and the walk goes on.
  bool next(std::size_t count, std::vector<WalkedEntry>& entries, std::vector<WalkError>& errors);

 private:
  bool start_directory(std::uint64_t id, std::vector<WalkError>& errors);
  void visit(const io::DirectoryEntry& listed, std::vector<WalkedEntry>& entries,
             std::vector<WalkError>& errors);

  io::FileSystem& files_;
  DirectoryTree& tree_;
  std::uint64_t next_id_;
  std::vector<std::uint64_t> pending_;  // directories still to be listed
  std::uint64_t current_ = 0;           // the directory being listed
  DirectoryReference current_handle_;
  std::unique_ptr<io::DirectoryReader> reader_;
  std::vector<io::DirectoryEntry> listed_;  // one batch of the reader; kept for its memory
};

}  // namespace fgsync::storage
