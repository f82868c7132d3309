#include "transfer/planner.h"

#include <limits>

#include "base/mark.h"
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
                 storage::StagingArea& staging, IncomingTable& incoming,
                 const ResolvedTarget& target)
    : session_(session),
      directories_(directories),
      staging_(staging),
      incoming_(incoming),
      target_(target) {
  if (!target.exists) new_.insert(0);
}

Result<wire::PlanBatch> Planner::plan(wire::ManifestBatch batch) {
  wire::PlanBatch plan;
  plan.decisions.reserve(batch.entries.size());
  for (wire::ManifestEntry& entry : batch.entries) {
    FGSYNC_RETURN_IF_ERROR(check_order(entry));
    ++entries_;
    if (entry.type == wire::EntryType::kRegular) {
      ++files_;
      bytes_ += entry.size;
    }
    const wire::PlanAction action = decide(entry);
    plan.decisions.push_back({entry.id, action});
    if (action == wire::PlanAction::kFailed) continue;
    if (action == wire::PlanAction::kSend) {
      bytes_wanted_ += entry.size;
      incoming_.add(std::make_shared<IncomingFile>(std::move(entry)));
      continue;
    }
    const std::string path = directories_.path_of(entry.parent, entry.name);
    digest_.add(wire::describe(entry, path, wire::Checksum{}));
    if (action == wire::PlanAction::kMade) session_.announce_path(path, entry);
  }
  return plan;
}

Status Planner::check_order(const wire::ManifestEntry& entry) {
  if (entry.id < next_id_ || entry.id == std::numeric_limits<std::uint64_t>::max()) {
    return Status(ErrorCode::kProtocolError, "manifest entries out of order");
  }
  next_id_ = entry.id + 1;
  if (entry.parent == 0 && !may_stand_in_root(entry)) {
    return Status(ErrorCode::kProtocolError, "a manifest entry that no source stands for");
  }
  if (entry.id == 0) return Status();
  if (!directories_.contains(entry.parent)) {
    return Status(ErrorCode::kProtocolError, "a manifest entry below something unknown");
  }
  if (entry.type == wire::EntryType::kDirectory &&
      !directories_.add(entry.id, entry.parent, entry.name)) {
    return Status(ErrorCode::kProtocolError, "a manifest directory that is there twice");
  }
  return Status();
}

bool Planner::may_stand_in_root(const wire::ManifestEntry& entry) const {
  if (target_.accept.replica_of_contents) return true;
  const auto expected = target_.expected.find(entry.name);
  return entry.id != 0 && expected != target_.expected.end() && expected->second == entry.type;
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
  Result<wire::PlanAction> action =
      entry.type == wire::EntryType::kDirectory ? decide_directory(entry)
      : entry.type == wire::EntryType::kSymlink ? decide_symlink(entry)
                                                : decide_file(entry);
  if (action.ok()) return *action;
  if (!session_.path_failed(display_path(entry), action.status())) mark("plan_no_space");
  if (entry.type == wire::EntryType::kDirectory) refused_.insert(entry.id);
  return wire::PlanAction::kFailed;
}

Result<wire::PlanAction> Planner::decide_directory(const wire::ManifestEntry& entry) {
  const bool dry_run = session_.parameters.dry_run;
  if (entry.id == 0) {
    if (!dry_run) pending_.push_back({0, metadata_of(entry)});
    return new_.contains(0) ? wire::PlanAction::kMade : wire::PlanAction::kKept;
  }
  Result<io::FileStatus> present = present_status(entry);
  if (!present.ok() && !is_missing(present)) return present.status();
  const bool exists = present.ok() && present->type == io::FileType::kDirectory;
  if (exists) mounts_.try_emplace(present->mount, entry.id);
  if (!exists) {
    new_.insert(entry.id);
    if (dry_run) return wire::PlanAction::kMade;
    auto parent = directories_.open(entry.parent);
    if (!parent.ok()) return parent.status();
    // Something that is no directory stands where one must be: it makes way, as with rsync. A
    // symlink is removed, never followed.
    if (present.ok()) {
      mark("plan_makes_way_for_directory");
      FGSYNC_RETURN_IF_ERROR(session_.files().unlink(**parent, entry.name));
    }
    FGSYNC_RETURN_IF_ERROR(
        session_.files().make_directory(**parent, entry.name, kUnfinishedDirectoryMode));
  }
  if (!dry_run) pending_.push_back({entry.id, metadata_of(entry)});
  return exists ? wire::PlanAction::kKept : wire::PlanAction::kMade;
}

Result<wire::PlanAction> Planner::decide_symlink(const wire::ManifestEntry& entry) {
  Result<io::FileStatus> present = present_status(entry);
  if (!present.ok() && !is_missing(present)) return present.status();
  if (present.ok() && present->type == io::FileType::kDirectory) {
    return Status(ErrorCode::kIoError,
                  "replacing it: a directory stands where the symlink must go");
  }
  if (session_.parameters.dry_run && !present.ok()) return wire::PlanAction::kMade;
  auto directory = directories_.open(entry.parent);
  if (!directory.ok()) return directory.status();
  if (present.ok() && present->type == io::FileType::kSymlink) {
    Result<std::string> target = session_.files().read_link(**directory, entry.name);
    if (target.ok() && *target == entry.symlink_target) {
      if (session_.parameters.dry_run) return wire::PlanAction::kKept;
      FGSYNC_RETURN_IF_ERROR(storage::apply_symlink_metadata(session_.files(), **directory,
                                                             entry.name, metadata_of(entry)));
      return wire::PlanAction::kKept;
    }
  }
  if (session_.parameters.dry_run) return wire::PlanAction::kMade;
  if (entry.parent == 0) {
    markers_.push_back(entry);
    return wire::PlanAction::kMade;
  }
  FGSYNC_RETURN_IF_ERROR(make_symlink(entry, *directory));
  return wire::PlanAction::kMade;
}

void Planner::publish_markers() {
  for (const wire::ManifestEntry& entry : markers_) {
    auto directory = directories_.open(entry.parent);
    Status made = directory.ok() ? make_symlink(entry, *directory) : directory.status();
    if (!made.ok()) (void)session_.path_failed(display_path(entry), made);
  }
  markers_.clear();
}

// A new symlink is made under a staging name, so that a reader of the old one never finds the name
// missing.
Status Planner::make_symlink(const wire::ManifestEntry& entry,
                             const storage::DirectoryReference& directory) {
  io::FileSystem& files = session_.files();
  auto staging = staging_for(files, directories_, staging_, directory);
  if (!staging.ok()) return staging.status();
  const std::string name = staging_.next_name();
  FGSYNC_RETURN_IF_ERROR(files.make_symlink(**staging, name, entry.symlink_target));
  Status made = storage::apply_symlink_metadata(files, **staging, name, metadata_of(entry));
  if (made.ok()) made = files.rename(**staging, name, *directory, entry.name);
  if (!made.ok()) {
    mark("plan_symlink_failed");
    (void)files.unlink(**staging, name);
  }
  return made;
}

Result<wire::PlanAction> Planner::decide_file(const wire::ManifestEntry& entry) {
  if (entry.size > session_.parameters.file_bytes_max()) {
    return Status(ErrorCode::kUnsupported, "it has more chunks than are kept; use larger ones");
  }
  Result<io::FileStatus> present = present_status(entry);
  if (!present.ok() && !is_missing(present)) return present.status();
  const wire::PlanAction wanted =
      session_.parameters.dry_run ? wire::PlanAction::kMade : wire::PlanAction::kSend;
  if (!present.ok()) return wanted;
  if (present->type == io::FileType::kDirectory) {
    mark("plan_file_obstructed");
    return Status(ErrorCode::kIoError, "replacing it: a directory stands where the file must go");
  }
  const storage::Metadata metadata = metadata_of(entry);
  const bool same = present->type == io::FileType::kRegular && present->size == entry.size &&
                    present->mtime == metadata.mtime;
  if (!same) return wanted;
  if (!session_.parameters.dry_run) {
    auto directory = directories_.open(entry.parent);
    if (!directory.ok()) return directory.status();
    Result<bool> updated =
        storage::update_metadata_at(session_.files(), **directory, entry.name, *present, metadata,
                                    /*with_mtime=*/false);
    if (!updated.ok()) return updated.status();
  }
  ++files_unchanged_;
  bytes_unchanged_ += entry.size;
  return wire::PlanAction::kUnchanged;
}

Result<io::FileStatus> Planner::present_status(const wire::ManifestEntry& entry) {
  if (new_.contains(entry.parent)) return Status(ErrorCode::kNotFound, "in a new directory");
  auto directory = directories_.open(entry.parent);
  if (!directory.ok()) return directory.status();
  return session_.files().stat_at(**directory, entry.name);
}

std::vector<storage::DirectoryReference> Planner::mount_directories() {
  std::vector<storage::DirectoryReference> directories;
  for (const auto& [mount, id] : mounts_) {
    auto directory = directories_.open(id);
    // One that cannot be entered is named when its own metadata is set; nothing was put into it.
    if (directory.ok()) directories.push_back(*directory);
  }
  return directories;
}

void Planner::finish_directories() {
  // Entries come parents first, so the deepest are last: a mode that forbids entering comes after
  // all below it.
  for (auto pending = pending_.rbegin(); pending != pending_.rend(); ++pending) {
    session_.add_progress();
    auto directory = directories_.open(pending->id);
    Status applied = directory.ok()
                         ? storage::apply_metadata(session_.files(), **directory, pending->metadata)
                         : directory.status();
    if (!applied.ok()) {
      mark("plan_directory_unfinished");
      const std::string relative = directories_.path_of(pending->id);
      session_.errors().add(relative.empty() ? target_.root : target_.root + "/" + relative,
                            applied);
    }
  }
  pending_.clear();
}

std::string Planner::display_path(const wire::ManifestEntry& entry) const {
  const std::string relative = directories_.path_of(entry.parent, entry.name);
  if (relative.empty()) return target_.root;
  return target_.root == "/" ? "/" + relative : target_.root + "/" + relative;
}

}  // namespace fgsync::transfer
