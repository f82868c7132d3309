// The receiver's plan: compares each announced entry with what stands at the target, makes
// directories and symlinks, and decides which files must come.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "storage/directory_tree.h"
#include "storage/metadata.h"
#include "storage/staging_area.h"
#include "transfer/incoming_table.h"
#include "transfer/session.h"
#include "transfer/target_mapping.h"
#include "wire/checksum.h"

namespace fgsync::transfer {

// Not thread-safe: batches are planned one after the other, in the order they come. Blocks.
class Planner {
 public:
  Planner(Session& session, storage::DirectoryTree& directories, storage::StagingArea& staging,
          IncomingTable& incoming, const ResolvedTarget& target);

  // kProtocolError for a batch that makes no sense (unknown parent, a name below a file, ids not
  // ascending) or that brings into the root what was not to come there. Trouble with single entries
  // goes to the session's errors and is decided as kFailed.
  Result<wire::PlanBatch> plan(wire::ManifestBatch batch);

  // Makes the symlinks at the top of the tree, which say which checkpoint is the latest: after all
  // that they may name has been published.
  void publish_markers();

  // Sets owners, modes and times of the directories, deepest first, when nothing will be put into
  // them any more.
  void finish_directories();

  // A directory on each mount that the planned directories stand on. Some of these may not be
  // opened any more after finish_directories().
  std::vector<storage::DirectoryReference> mount_directories();

  std::uint64_t entries() const { return entries_; }
  std::uint64_t files() const { return files_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t files_unchanged() const { return files_unchanged_; }
  std::uint64_t bytes_unchanged() const { return bytes_unchanged_; }
  std::uint64_t bytes_wanted() const { return bytes_wanted_; }
  // Of the entries that are settled by the plan.
  const wire::TreeDigest& digest() const { return digest_; }

 private:
  struct PendingDirectory {
    std::uint64_t id;
    storage::Metadata metadata;
  };
  Status check_order(const wire::ManifestEntry& entry);
  bool may_stand_in_root(const wire::ManifestEntry& entry) const;
  wire::PlanAction decide(const wire::ManifestEntry& entry);
  Result<wire::PlanAction> decide_directory(const wire::ManifestEntry& entry);
  Result<wire::PlanAction> decide_symlink(const wire::ManifestEntry& entry);
  Result<wire::PlanAction> decide_file(const wire::ManifestEntry& entry);
  Status make_symlink(const wire::ManifestEntry& entry,
                      const storage::DirectoryReference& directory);
  // What stands there now: kNotFound where nothing does, without asking inside directories that
  // this run has made.
  Result<io::FileStatus> present_status(const wire::ManifestEntry& entry);
  std::string display_path(const wire::ManifestEntry& entry) const;

  Session& session_;
  storage::DirectoryTree& directories_;
  storage::StagingArea& staging_;
  IncomingTable& incoming_;
  const ResolvedTarget target_;
  std::uint64_t next_id_ = 0;              // the least that the next entry may have
  std::unordered_set<std::uint64_t> new_;  // directories made (dry run: to be made) by this run
  std::unordered_set<std::uint64_t>
      refused_;  // directories that could not be made: all below fails too
  std::vector<PendingDirectory> pending_;
  std::vector<wire::ManifestEntry> markers_;
  std::map<std::uint64_t, std::uint64_t> mounts_;  // to a directory on each that was there before
  wire::TreeDigest digest_;
  std::uint64_t entries_ = 0;
  std::uint64_t files_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t files_unchanged_ = 0;
  std::uint64_t bytes_unchanged_ = 0;
  std::uint64_t bytes_wanted_ = 0;
};

storage::Metadata metadata_of(const wire::ManifestEntry& entry);

}  // namespace fgsync::transfer
