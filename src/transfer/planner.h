// The receiver's plan: compares each announced entry with what stands at the target, makes
// directories and symlinks, and decides which files must come.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "receipt/receipt_writer.h"
#include "storage/directory_tree.h"
#include "storage/metadata.h"
#include "storage/staging_area.h"
#include "transfer/chunk_journal.h"
#include "transfer/committer.h"
#include "transfer/incoming_table.h"
#include "transfer/manifest_order.h"
#include "transfer/session.h"
#include "transfer/target_mapping.h"
#include "transfer/tree_switch.h"
#include "wire/checksum.h"

namespace fgsync::transfer {

// Not thread-safe: batches are planned one after the other, in the order they come. Blocks.
class Planner {
 public:
  Planner(Session& session, storage::DirectoryTree& directories, storage::StagingArea& staging,
          IncomingTable& incoming, ChunkJournal& journal, Committer& committer,
          receipt::ReceiptWriter& receipt, const ResolvedTarget& target, TreeSwitch* tree_switch);

  // Decides the entries in their order, and says how many it has decided: all, or those before the
  // first that changes the target, for which may_change() must be called first. Those behind it
  // come again with the next call, it at their head. kProtocolError for a batch that makes no sense
  // (unknown parent, a name below a file, ids not ascending) or that brings into the root what was
  // not to come there. Trouble with single entries goes to the session's errors and is decided as
  // kFailed.
  Result<std::size_t> plan(std::span<wire::ManifestEntry> entries, wire::PlanBatch& plan);
  // Announced files that stand there with the same size, where contents are compared: to be decided
  // by decide_compared(). Those since the last call.
  struct Undecided {
    wire::ManifestEntry entry;
    io::FileStatus present;
  };
  std::vector<Undecided> take_undecided() { return std::exchange(undecided_, {}); }
  // What the sender has to say of it: nullopt if it could not read it; `same` with its digest.
  // False, with nothing decided, when may_change() must be called first.
  struct Contents {
    bool same = false;
    wire::Checksum digest;
  };
  bool decide_compared(Undecided& file, const std::optional<Contents>& contents,
                       wire::PlanBatch& plan);
  // The target is this run's alone.
  void may_change() { may_change_ = true; }

  // Sets owners, modes and times of the directories, deepest first, when nothing will be put into
  // them any more. Of the root, if it is described, after `before_root`, which is called in any
  // case.
  void finish_directories(const std::function<void()>& before_root);

  // A directory on each mount that the planned directories stand on. Some of these may not be
  // opened any more after finish_directories().
  std::vector<storage::DirectoryReference> mount_directories();

  std::uint64_t entries() const { return entries_; }
  std::uint64_t files() const { return files_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t files_unchanged() const { return files_unchanged_; }
  std::uint64_t files_passed_over() const { return files_passed_over_; }
  std::uint64_t bytes_unchanged() const { return bytes_unchanged_; }
  std::uint64_t bytes_wanted() const { return bytes_wanted_; }
  std::uint64_t bytes_held() const { return bytes_held_; }
  // Of the entries that are settled by the plan.
  const wire::TreeDigest& digest() const { return digest_; }

 private:
  struct PendingDirectory {
    std::uint64_t id;
    storage::Metadata metadata;
  };
  Status take_note(const wire::ManifestEntry& entry);
  // Not OK when the entry has to wait for may_change().
  Status begin_change();
  // The entry is to be sent; what an interrupted run has left of it is announced first.
  void ask_for(wire::ManifestEntry entry, EntryDifferences differences);
  void tell_held(const IncomingFile& file);
  Result<storage::DirectoryReference> staging_of(std::uint64_t directory);
  wire::PlanAction decide(const wire::ManifestEntry& entry);
  // The action, or that the entry has failed, which is noted.
  wire::PlanAction action_of(const wire::ManifestEntry& entry,
                             const Result<wire::PlanAction>& action);
  void judge_room();
  void settle(wire::ManifestEntry& entry, wire::PlanAction action, wire::PlanBatch& plan);
  Result<wire::PlanAction> decide_by_type(const wire::ManifestEntry& entry);
  // `present`: what stands there now; nullptr: nothing.
  bool is_passed_over(const wire::ManifestEntry& entry, const io::FileStatus* present) const;
  EntryDifferences differences_of(const wire::ManifestEntry& entry,
                                  const io::FileStatus* present) const;
  Result<wire::PlanAction> decide_root(const wire::ManifestEntry& entry);
  Result<io::FileStatus> present_root();
  Result<wire::PlanAction> decide_directory(const wire::ManifestEntry& entry,
                                            const io::FileStatus* present);
  Status make_directory(const wire::ManifestEntry& entry, bool makes_way);
  Result<wire::PlanAction> decide_symlink(const wire::ManifestEntry& entry,
                                          const io::FileStatus* present);
  Result<wire::PlanAction> decide_file(const wire::ManifestEntry& entry,
                                       const io::FileStatus* present);
  Result<wire::PlanAction> replace_file(const io::FileStatus* present);
  // `digest`: of its contents, if they are known to be the source's.
  Result<wire::PlanAction> keep_file(const wire::ManifestEntry& entry,
                                     const io::FileStatus& present, const wire::Checksum* digest);
  Status keep_with_metadata(const wire::ManifestEntry& entry, const io::FileStatus& present,
                            const wire::Checksum* digest);
  // Mode, owner and time of a file that is there.
  Status update_file(const wire::ManifestEntry& entry, const io::FileStatus& present);
  Result<bool> clear_directory(const wire::ManifestEntry& entry);
  // The receipt must not miss a file that makes way.
  void strike_from_receipt(const wire::ManifestEntry& entry, const io::FileStatus& present);
  Status make_symlink(const wire::ManifestEntry& entry,
                      const storage::DirectoryReference& directory);
  bool is_marker(const wire::ManifestEntry& entry) const;
  // What stands there now: kNotFound where nothing does, without asking inside directories that
  // this run has made.
  Result<io::FileStatus> present_status(const wire::ManifestEntry& entry);
  std::string display_path(const wire::ManifestEntry& entry) const;

  Session& session_;
  storage::DirectoryTree& directories_;
  storage::StagingArea& staging_;
  IncomingTable& incoming_;
  ChunkJournal& journal_;
  Committer& committer_;
  receipt::ReceiptWriter& receipt_;
  const Markers markers_;
  ManifestOrder order_;
  const ResolvedTarget target_;
  TreeSwitch* const tree_switch_;  // nullptr: each file is published by itself
  SpaceCheck space_;
  std::vector<Undecided> undecided_;
  EntryDifferences differences_;  // of the entry that was decided last
  // Of the entry that was decided last: the size of the version that goes when it has come.
  std::optional<std::uint64_t> replaced_;
  // Where files of one directory are staged: they come behind each other.
  struct StagingPlace {
    std::uint64_t directory = 0;
    storage::DirectoryReference staging;
  };
  StagingPlace last_staging_;
  bool may_change_ = false;
  bool waits_ = false;                     // the entry at hand waits for may_change()
  bool noted_ = false;                     // the next entry has been taken note of already
  std::unordered_set<std::uint64_t> new_;  // directories made (dry run: to be made) by this run
  std::unordered_set<std::uint64_t>
      refused_;  // directories that could not be made: all below fails too
  std::unordered_set<std::uint64_t> passed_over_;  // directories: so is all below
  std::vector<PendingDirectory> pending_;
  std::map<std::uint64_t, std::uint64_t> mounts_;  // to a directory on each that was there before
  wire::TreeDigest digest_;
  std::uint64_t entries_ = 0;
  std::uint64_t files_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t files_unchanged_ = 0;
  std::uint64_t files_passed_over_ = 0;
  std::uint64_t bytes_unchanged_ = 0;
  std::uint64_t bytes_wanted_ = 0;
  std::uint64_t bytes_held_ = 0;  // of files that are wanted
};

storage::Metadata metadata_of(const wire::ManifestEntry& entry);

}  // namespace fgsync::transfer
