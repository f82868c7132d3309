// Walks a source tree and yields its entries in batches, each directory before what is in it, so
// that sending starts while the walk goes on. Depth first with an explicit stack: neither depth nor
// breadth costs more than a number per pending directory, and a directory of any size streams
// through unsorted. The state directory
// (".fgsync") is never part of a tree, at any depth. What the rules leave out is not looked at, a
// directory not entered.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "selection/filter_rules.h"
#include "selection/listed_paths.h"
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
  bool listed = false;     // it was asked for by name; kNotFound: it is not there
};

// What of a tree is walked.
struct WalkScope {
  // Where the walk's root stands below the root of the transfer, for the rules.
  std::string prefix;
  // Outlives the walker; nullptr: nothing is left out.
  const selection::FilterRules* rules = nullptr;
  // Outlives the walker; nullptr: everything, else what it names, and directories on the way. Those
  // that it names are walked whole only if so said.
  const selection::ListedPaths* listed = nullptr;
  bool listed_directories_whole = false;
  // The file system follows symlinks: what one leads to stands for it.
  bool through_links = false;
  // Directories elsewhere are yielded, and not entered.
  std::optional<std::uint64_t> device = {};
};

// Not thread-safe; next() blocks (call it inside a blocking job). Directories are entered into
// `tree`, which must outlive the walker.
class TreeWalker {
 public:
  TreeWalker(io::FileSystem& files, DirectoryTree& tree, std::uint64_t first_id,
             WalkScope scope = {});

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
  using Listed = selection::ListedPaths;
  // How much of a directory is walked: all names in it or those that are listed; and whether all
  // below them is.
  struct Reach {
    bool all_names = true;
    bool all_below = true;
    Listed::Branch listed = {};
  };
  struct Pending {
    std::uint64_t id;
    Reach reach;
  };
  bool start_directory(const Pending& pending, std::vector<WalkError>& errors);
  Status take_identity();
  Status list(std::vector<WalkError>& errors);
  std::optional<Listed::Child> listed_child(const std::string& name) const;
  Reach reach_below(const std::optional<Listed::Child>& child, bool chosen) const;
  void fail(const std::string& name, const std::optional<Listed::Child>& child,
            const Status& status, std::vector<WalkError>& errors) const;
  std::string path_below_root(std::uint64_t id) const;
  bool leads_into_itself(const io::FileStatus& status) const;
  bool is_left_out(const std::string& name, io::FileType type) const;
  void visit(const io::DirectoryEntry& found, std::vector<WalkedEntry>& entries,
             std::vector<WalkError>& errors);

  io::FileSystem& files_;
  DirectoryTree& tree_;
  std::uint64_t next_id_;
  const WalkScope scope_;
  std::vector<Pending> pending_;  // directories still to be listed
  // Where symlinks are followed: device and inode of each directory.
  std::unordered_map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> identities_;
  std::uint64_t current_ = 0;  // the directory being listed
  Reach reach_;                // of it
  std::string current_path_;   // with a slash at the end, if there are rules
  DirectoryReference current_handle_;
  std::unique_ptr<io::DirectoryReader> reader_;
  std::vector<io::DirectoryEntry> names_;  // one batch of the reader; kept for its memory
};

}  // namespace fgsync::storage
