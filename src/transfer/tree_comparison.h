// What stands at the target, against what is announced: all that can be said without reading a
// file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "storage/directory_tree.h"
#include "storage/tree_walker.h"
#include "transfer/file_digest.h"
#include "transfer/manifest_order.h"
#include "transfer/target_mapping.h"
#include "wire/message.h"

namespace fgsync::transfer {

// "a file", "a directory", ...
const char* type_text(io::FileType type);

// A file whose contents are to be compared.
struct FileToCompare {
  std::uint64_t id = 0;
  std::string path;  // below the target's root
  FilePlace place;   // of the announced size
};

struct Compared {
  wire::PlanBatch plan;
  std::vector<FileToCompare> to_read;
  std::vector<Difference> differences;
  std::vector<ErrorEntry> errors;  // their paths are below the target's root
};

// Takes 8 bytes for each announced entry, so that what only the target has can be told. Not
// thread-safe; everything blocks.
class TreeComparison {
 public:
  TreeComparison(io::FileSystem& files, const ResolvedTarget& target, io::FileHandle root);

  // Errors as ManifestOrder::take().
  Status compare(const wire::ManifestBatch& batch, Compared& compared);
  // When everything was announced: looks for what only the target has, at about `count` entries of
  // it; false at the end.
  Result<bool> look_for_extra(std::size_t count, Compared& compared);
  // Whether the target's path still leads to what was compared: another run may have switched the
  // whole tree (--publish=tree), or somebody renamed it.
  Result<bool> still_stands();

  std::uint64_t entries() const { return entries_; }
  std::uint64_t files() const { return files_count_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  wire::PlanAction decide(const wire::ManifestEntry& entry, Compared& compared);
  wire::PlanAction compare_with(const io::FileStatus& present, const wire::ManifestEntry& entry,
                                std::string path, Compared& compared);
  wire::PlanAction compare_symlink(const wire::ManifestEntry& entry, std::string path,
                                   Compared& compared);
  wire::PlanAction pass_over(const wire::ManifestEntry& entry);
  Status begin_walk();
  void look_at(const storage::WalkedEntry& entry, Compared& compared);

  io::FileSystem& files_;
  const ResolvedTarget target_;
  const std::shared_ptr<storage::DirectoryTree> directories_;  // by the manifest's numbers
  ManifestOrder order_;
  std::uint64_t entries_ = 0;
  std::uint64_t files_count_ = 0;
  std::uint64_t bytes_ = 0;
  // Announced directories below which nothing is compared.
  std::unordered_set<std::uint64_t> passed_over_;
  // Hashes of announced paths where something else stands, or a directory that cannot be opened.
  std::unordered_set<std::uint64_t> passed_over_paths_;
  std::vector<std::uint64_t> announced_;  // hashes of paths; in order once the walk has begun
  // The walk for what is extra.
  std::unique_ptr<storage::DirectoryTree> walked_directories_;
  std::unique_ptr<storage::TreeWalker> walker_;
  std::unordered_set<std::uint64_t> not_looked_into_;  // its directories
};

}  // namespace fgsync::transfer
