// Carries an old tree over into a new one beside it: the new one gets directories and symlinks of
// its own, and hard links to all else, so that it costs no room and the old tree is not touched.
// Where links are refused, regular files are copied, and FIFOs and sockets made anew.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "storage/copy_file.h"
#include "storage/directory_tree.h"
#include "storage/metadata.h"
#include "storage/remove_tree.h"

namespace fgsync::storage {

// Not thread-safe; everything blocks. The state directory of the root is left alone on both sides;
// those further down are carried as anything else.
class TreeCarrier {
 public:
  TreeCarrier(io::FileSystem& files, io::FileHandle old_root, io::FileHandle new_root,
              AsidePlace aside, TreeStep step);

  // Everything whose name the new tree does not have. kUnsupported for what stands on another
  // mount, which cannot be linked.
  Status carry();

  // The other way round, in a new tree that an earlier run has been at: everything whose path
  // (relative to the root) `is_wanted` does not want becomes what it is in the old tree, or goes.
  using IsWanted = std::function<bool(const std::string& path)>;
  Status restore(const IsWanted& is_wanted);

 private:
  struct Carried {
    std::uint64_t id;
    Metadata metadata;
  };
  using Visit = Status (TreeCarrier::*)(std::uint64_t directory, const std::string& name);
  Status visit_names(std::uint64_t directory, bool in_new, Visit visit);
  Status carry_below(std::size_t first);
  Status carry_name(std::uint64_t directory, const std::string& name);
  Status carry_directory(std::uint64_t parent, const std::string& name,
                         const io::FileStatus& status);
  Status carry_symlink(const io::FileHandle& from, const io::FileHandle& to,
                       const std::string& name, const io::FileStatus& status);
  Status carry_file(const io::FileHandle& from, const io::FileHandle& to, const std::string& name,
                    const io::FileStatus& status);
  Status make_anew(const io::FileHandle& to, const std::string& name, const io::FileStatus& status);
  Status restore_name(std::uint64_t directory, const std::string& name);
  Result<bool> is_same(std::uint64_t directory, const std::string& name, const io::FileStatus& now);
  std::uint64_t enter(std::uint64_t parent, const std::string& name);
  Status finish_directories();

  io::FileSystem& files_;
  DirectoryTree old_;
  DirectoryTree new_;  // by the same numbers
  const AsidePlace aside_;
  const TreeStep step_;
  std::uint64_t mount_ = 0;
  std::uint64_t next_id_ = 1;
  std::vector<Carried> carried_;           // parents first; their metadata comes at the end
  std::vector<std::uint64_t> restorable_;  // directories of the new tree still to be looked into
  IsWanted is_wanted_;
};

}  // namespace fgsync::storage
