#include "transfer/planner.h"

#include <cerrno>

#include "base/limits.h"
#include "base/mark.h"
#include "transfer/changes.h"
#include "transfer/staging_place.h"

namespace fgsync::transfer {
namespace {

// Made for this run only; a directory gets its real mode when everything in it is in place.
constexpr std::uint32_t kUnfinishedDirectoryMode = 0700;

bool is_missing(const Result<io::FileStatus>& status) {
  return !status.ok() && status.status().code() == ErrorCode::kNotFound;
}

}  // namespace

storage::Metadata metadata_of(const wire::ManifestEntry& entry) {
  return {.mode = entry.mode,
          .uid = entry.uid,
          .gid = entry.gid,
          .mtime = {entry.mtime_seconds, entry.mtime_nanoseconds}};
}

Planner::Planner(Session& session, storage::DirectoryTree& directories,
                 storage::StagingArea& staging, IncomingTable& incoming, ChunkJournal& journal,
                 Committer& committer, receipt::ReceiptWriter& receipt,
                 const ResolvedTarget& target, TreeSwitch* tree_switch)
    : session_(session),
      directories_(directories),
      staging_(staging),
      incoming_(incoming),
      journal_(journal),
      committer_(committer),
      receipt_(receipt),
      markers_(session.parameters.last),
      order_(directories, target),
      target_(target),
      tree_switch_(tree_switch),
      space_(session.files(), target.root) {
  if (!target.exists) new_.insert(0);
}

Result<std::size_t> Planner::plan(std::span<wire::ManifestEntry> entries, wire::PlanBatch& plan) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    wire::ManifestEntry& entry = entries[i];
    if (!std::exchange(noted_, false)) FGSYNC_RETURN_IF_ERROR(take_note(entry));
    const wire::PlanAction action = decide(entry);
    if (std::exchange(waits_, false)) {
      noted_ = true;
      return i;
    }
    settle(entry, action, plan);
  }
  judge_room();
  return entries.size();
}

void Planner::judge_room() {
  Status room = space_.judge();
  if (!room.ok()) session_.fail(room);
}

void Planner::settle(wire::ManifestEntry& entry, wire::PlanAction action, wire::PlanBatch& plan) {
  const EntryDifferences differences = std::exchange(differences_, {});
  if (action == wire::PlanAction::kCompare) return;
  plan.decisions.push_back({entry.id, action, differences});
  if (action == wire::PlanAction::kFailed || action == wire::PlanAction::kPassedOver) return;
  if (action == wire::PlanAction::kSend) return ask_for(std::move(entry), differences);
  const std::string path = directories_.path_of(entry.parent, entry.name);
  digest_.add(wire::describe(entry, path, wire::Checksum{}));
  session_.announce_change(path, entry, differences, action == wire::PlanAction::kMade);
}

bool Planner::decide_compared(Undecided& file, const std::optional<Contents>& contents,
                              wire::PlanBatch& plan) {
  wire::PlanAction action = wire::PlanAction::kFailed;
  if (contents) {
    differences_ = differences_of(file.entry, &file.present);
    action = action_of(file.entry, contents->same
                                       ? keep_file(file.entry, file.present, &contents->digest)
                                       : replace_file(&file.present));
  }
  if (std::exchange(waits_, false)) return false;
  settle(file.entry, action, plan);
  judge_room();
  return true;
}

Status Planner::take_note(const wire::ManifestEntry& entry) {
  FGSYNC_RETURN_IF_ERROR(order_.take(entry));
  ++entries_;
  if (tree_switch_ != nullptr) {
    tree_switch_->announce(directories_.path_of(entry.parent, entry.name));
  }
  if (entry.type == wire::EntryType::kRegular) {
    ++files_;
    bytes_ += entry.size;
  }
  return Status();
}

Status Planner::begin_change() {
  if (may_change_ || session_.parameters.dry_run) return Status();
  waits_ = true;
  return Status(ErrorCode::kLocked, "the target is not locked yet");
}

// Trouble with the staging is trouble with the file itself: it will be met again, and told, when it
// is staged.
void Planner::ask_for(wire::ManifestEntry entry, EntryDifferences differences) {
  const bool marker = is_marker(entry);
  const auto file = std::make_shared<IncomingFile>(std::move(entry), marker);
  file->differences = differences;
  const std::uint64_t size = file->entry.size;
  auto staging = staging_of(file->entry.parent);
  if (staging.ok()) {
    if (journal_.covers(size)) {
      journal_.begin(file, directories_.path_of(file->entry.parent, file->entry.name), *staging);
    }
    // What an earlier run has left has its room.
    file->room = space_.claim(*staging, file->staged ? 0 : size, replaced_);
    if (file->staged) file->room.written();
  }
  bytes_wanted_ += size - file->held;
  bytes_held_ += file->held;
  tell_held(*file);
  incoming_.add(file);
}

void Planner::tell_held(const IncomingFile& file) {
  for (std::uint64_t chunk = 0; chunk < file.claimed.size();) {
    if (!file.claimed[chunk]) {
      ++chunk;
      continue;
    }
    wire::HeldChunks held{.entry = file.entry.id, .first_chunk = chunk, .checksums = {}};
    while (chunk < file.claimed.size() && file.claimed[chunk] &&
           held.checksums.size() < limits::kHeldChunksMax) {
      held.checksums.push_back(file.checksums[chunk++]);
    }
    session_.push(std::move(held));
  }
}

Result<storage::DirectoryReference> Planner::staging_of(std::uint64_t directory) {
  if (!last_staging_.staging || last_staging_.directory != directory) {
    auto handle = directories_.open(directory);
    if (!handle.ok()) return handle.status();
    auto staging = staging_for(session_.files(), directories_, staging_, *handle);
    if (!staging.ok()) return staging.status();
    last_staging_ = {directory, *staging};
  }
  return last_staging_.staging;
}

wire::PlanAction Planner::decide(const wire::ManifestEntry& entry) {
  if (refused_.contains(entry.parent) && entry.id != 0) {
    mark("plan_below_refused");
    // The directory's own error says it all.
    if (entry.type == wire::EntryType::kDirectory) refused_.insert(entry.id);
    if (entry.type == wire::EntryType::kRegular) {
      session_.errors().add(display_path(entry),
                            Status(ErrorCode::kIoError, "its directory could not be made"));
    }
    return wire::PlanAction::kFailed;
  }
  return action_of(entry, decide_by_type(entry));
}

wire::PlanAction Planner::action_of(const wire::ManifestEntry& entry,
                                    const Result<wire::PlanAction>& action) {
  if (action.ok()) {
    const bool passed_over = *action == wire::PlanAction::kPassedOver;
    if (passed_over && entry.type == wire::EntryType::kDirectory) passed_over_.insert(entry.id);
    if (passed_over && entry.type == wire::EntryType::kRegular) ++files_passed_over_;
    return *action;
  }
  if (waits_) return wire::PlanAction::kFailed;  // until it comes again
  if (!session_.path_failed(display_path(entry), action.status())) mark("plan_no_space");
  if (entry.type == wire::EntryType::kDirectory) refused_.insert(entry.id);
  return wire::PlanAction::kFailed;
}

Result<wire::PlanAction> Planner::decide_by_type(const wire::ManifestEntry& entry) {
  if (entry.id == 0) return decide_root(entry);
  if (passed_over_.contains(entry.parent)) return wire::PlanAction::kPassedOver;
  const Result<io::FileStatus> status = present_status(entry);
  if (!status.ok() && !is_missing(status)) return status.status();
  const io::FileStatus* present = status.ok() ? &*status : nullptr;
  if (is_passed_over(entry, present)) return wire::PlanAction::kPassedOver;
  const bool stands_in_the_way = present != nullptr && present->type == io::FileType::kDirectory &&
                                 entry.type != wire::EntryType::kDirectory;
  if (stands_in_the_way) {
    const Result<bool> cleared = clear_directory(entry);
    if (!cleared.ok()) return cleared.status();
    if (*cleared) present = nullptr;
  }
  differences_ = differences_of(entry, present);
  switch (entry.type) {
    case wire::EntryType::kDirectory:
      return decide_directory(entry, present);
    case wire::EntryType::kSymlink:
      return decide_symlink(entry, present);
    case wire::EntryType::kRegular:
      return decide_file(entry, present);
  }
  return wire::PlanAction::kFailed;  // there is no other type
}

bool Planner::is_passed_over(const wire::ManifestEntry& entry,
                             const io::FileStatus* present) const {
  return transfer::is_passed_over(session_.parameters, entry, present,
                                  [&] { return directories_.path_of(entry.parent, entry.name); });
}

EntryDifferences Planner::differences_of(const wire::ManifestEntry& entry,
                                         const io::FileStatus* present) const {
  return transfer::differences_of(entry, present, session_.files().may_set_owner());
}

Result<wire::PlanAction> Planner::decide_root(const wire::ManifestEntry& entry) {
  if (target_.is_new) {
    differences_ = differences_of(entry, nullptr);
  } else {
    const Result<io::FileStatus> present = present_root();
    if (!present.ok() && !is_missing(present)) return present.status();
    differences_ = differences_of(entry, present.ok() ? &*present : nullptr);
  }
  if (!session_.parameters.dry_run) pending_.push_back({0, metadata_of(entry)});
  return target_.is_new ? wire::PlanAction::kMade : wire::PlanAction::kKept;
}

// Of a tree that is to be switched, the new root has nothing of the old one's yet.
Result<io::FileStatus> Planner::present_root() {
  if (tree_switch_ != nullptr) return tree_switch_->old_root();
  auto root = directories_.open(0);
  if (!root.ok()) return root.status();
  return session_.files().stat(**root);
}

Result<wire::PlanAction> Planner::decide_directory(const wire::ManifestEntry& entry,
                                                   const io::FileStatus* present) {
  const bool dry_run = session_.parameters.dry_run;
  const bool exists = present != nullptr && present->type == io::FileType::kDirectory;
  if (exists) mounts_.try_emplace(present->mount, entry.id);
  if (!exists) {
    FGSYNC_RETURN_IF_ERROR(begin_change());
    new_.insert(entry.id);
    if (dry_run) return wire::PlanAction::kMade;
    if (present != nullptr) strike_from_receipt(entry, *present);
    FGSYNC_RETURN_IF_ERROR(make_directory(entry, present != nullptr));
  }
  if (!dry_run) pending_.push_back({entry.id, metadata_of(entry)});
  return exists ? wire::PlanAction::kKept : wire::PlanAction::kMade;
}

// Something that is no directory may stand where one must be: it makes way, as with rsync. A
// symlink is removed, never followed.
Status Planner::make_directory(const wire::ManifestEntry& entry, bool makes_way) {
  io::FileSystem& files = session_.files();
  auto parent = directories_.open(entry.parent);
  if (!parent.ok()) return parent.status();
  Status made;
  if (makes_way) {
    mark("plan_makes_way_for_directory");
    made = files.unlink(**parent, entry.name);
    if (made.system_errno() == ENOENT) made = Status();
  }
  if (made.ok()) made = files.make_directory(**parent, entry.name, kUnfinishedDirectoryMode);
  if (made.ok()) return made;
  // Another run at this target may have done the same a moment ago.
  Result<io::FileStatus> now = files.stat_at(**parent, entry.name);
  if (!now.ok() || now->type != io::FileType::kDirectory) return made;
  mark("plan_directory_made_by_another");
  return Status();
}

Result<wire::PlanAction> Planner::decide_symlink(const wire::ManifestEntry& entry,
                                                 const io::FileStatus* present) {
  if (present != nullptr && present->type == io::FileType::kDirectory) {
    mark("plan_symlink_obstructed");
    return Status(ErrorCode::kIoError,
                  "replacing it: a directory stands where the symlink must go");
  }
  if (session_.parameters.dry_run && present == nullptr) return wire::PlanAction::kMade;
  auto directory = directories_.open(entry.parent);
  if (!directory.ok()) return directory.status();
  if (present != nullptr && present->type == io::FileType::kSymlink) {
    Result<std::string> target = session_.files().read_link(**directory, entry.name);
    if (target.ok() && *target == entry.symlink_target) {
      if (session_.parameters.dry_run) return wire::PlanAction::kKept;
      FGSYNC_RETURN_IF_ERROR(storage::apply_symlink_metadata(session_.files(), **directory,
                                                             entry.name, metadata_of(entry)));
      return wire::PlanAction::kKept;
    }
    differences_.add(EntryDifferences::kContents);
  }
  if (session_.parameters.dry_run) return wire::PlanAction::kMade;
  FGSYNC_RETURN_IF_ERROR(begin_change());
  if (present != nullptr) strike_from_receipt(entry, *present);
  FGSYNC_RETURN_IF_ERROR(make_symlink(entry, *directory));
  return wire::PlanAction::kMade;
}

void Planner::strike_from_receipt(const wire::ManifestEntry& entry, const io::FileStatus& present) {
  if (present.type != io::FileType::kRegular) return;
  const receipt::Record gone = receipt::GoneRecord{directories_.path_of(entry.parent, entry.name)};
  receipt_.append(std::span(&gone, 1));
  receipt_.sync();
  receipt_.distrust();  // it is still there
}

bool Planner::is_marker(const wire::ManifestEntry& entry) const {
  return markers_.contains(entry, [&] { return directories_.path_of(entry.parent, entry.name); });
}

// A new symlink is made under a staging name, so that a reader of the old one never finds the name
// missing.
Status Planner::make_symlink(const wire::ManifestEntry& entry,
                             const storage::DirectoryReference& directory) {
  io::FileSystem& files = session_.files();
  auto staging = staging_for(files, directories_, staging_, directory);
  if (!staging.ok()) return staging.status();
  auto link = storage::StagedFile::create_symlink(files, *staging, staging_.next_name(),
                                                  entry.symlink_target, metadata_of(entry));
  Status made = link.ok() ? Status() : link.status();
  if (made.ok() && is_marker(entry)) {
    committer_.hold({std::make_shared<IncomingFile>(entry, true), std::move(*link), {}});
  } else if (made.ok()) {
    made = (*link)->publish(*directory, entry.name);
  }
  if (!made.ok()) mark("plan_symlink_failed");
  return made;
}

Result<io::FileStatus> Planner::present_status(const wire::ManifestEntry& entry) {
  if (new_.contains(entry.parent)) return Status(ErrorCode::kNotFound, "in a new directory");
  auto directory = directories_.open(entry.parent);
  if (!directory.ok()) return directory.status();
  return session_.files().stat_at(**directory, entry.name);
}

std::string Planner::display_path(const wire::ManifestEntry& entry) const {
  const std::string relative = directories_.path_of(entry.parent, entry.name);
  if (relative.empty()) return target_.root;
  return target_.root == "/" ? "/" + relative : target_.root + "/" + relative;
}

}  // namespace fgsync::transfer
