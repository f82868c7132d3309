// What the planner makes of regular files.
#include "base/mark.h"
#include "storage/copy_file.h"
#include "transfer/changes.h"
#include "transfer/planner.h"

namespace fgsync::transfer {

Result<wire::PlanAction> Planner::decide_file(const wire::ManifestEntry& entry,
                                              const io::FileStatus* present) {
  if (entry.size > session_.parameters.file_bytes_max()) {
    return Status(ErrorCode::kUnsupported, "it has more chunks than are kept; use larger ones");
  }
  if (present != nullptr && present->type == io::FileType::kDirectory) {
    mark("plan_file_obstructed");
    return Status(ErrorCode::kIoError, "replacing it: a directory stands where the file must go");
  }
  // With a time of its own a marker is a new one, and comes after all else.
  const bool may_stay = present != nullptr && present->type == io::FileType::kRegular &&
                        (present->mtime == metadata_of(entry).mtime || !is_marker(entry));
  if (may_stay && counts_as_same(session_.parameters.changes.comparison, entry, *present)) {
    return keep_file(entry, *present, nullptr);
  }
  if (may_stay && session_.parameters.changes.comparison == Comparison::kContents &&
      present->size == entry.size) {
    undecided_.push_back({entry, *present});
    return wire::PlanAction::kCompare;
  }
  return replace_file(present);
}

Result<wire::PlanAction> Planner::replace_file(const io::FileStatus* present) {
  FGSYNC_RETURN_IF_ERROR(begin_change());
  if (session_.parameters.changes.comparison == Comparison::kContents) {
    differences_.add(EntryDifferences::kContents);
  }
  // One with other names stays.
  const bool goes =
      present != nullptr && present->type == io::FileType::kRegular && present->links == 1;
  replaced_ = goes ? std::optional(present->size) : std::nullopt;
  return session_.parameters.dry_run ? wire::PlanAction::kMade : wire::PlanAction::kSend;
}

Result<wire::PlanAction> Planner::keep_file(const wire::ManifestEntry& entry,
                                            const io::FileStatus& present,
                                            const wire::Checksum* digest) {
  if (!session_.parameters.dry_run) {
    FGSYNC_RETURN_IF_ERROR(keep_with_metadata(entry, present, digest));
  }
  ++files_unchanged_;
  bytes_unchanged_ += entry.size;
  return wire::PlanAction::kUnchanged;
}

// Its time differs where that was not compared. Then the receipt tells of it anew or, if nothing is
// known of its contents, no more.
Status Planner::keep_with_metadata(const wire::ManifestEntry& entry, const io::FileStatus& present,
                                   const wire::Checksum* digest) {
  const storage::Metadata metadata = metadata_of(entry);
  if (present.mtime != metadata.mtime) {
    FGSYNC_RETURN_IF_ERROR(begin_change());
    const std::string path = directories_.path_of(entry.parent, entry.name);
    const receipt::Record record =
        digest == nullptr
            ? receipt::Record(receipt::GoneRecord{path})
            : receipt::Record(receipt::FileRecord{.path = path,
                                                  .size = entry.size,
                                                  .mtime = metadata.mtime,
                                                  .chunk_bytes = session_.parameters.chunk_bytes,
                                                  .digest = *digest});
    receipt_.append(std::span(&record, 1));
  }
  Status updated = update_file(entry, present);
  if (!updated.ok() && present.mtime != metadata.mtime) receipt_.distrust();
  return updated;
}

Status Planner::update_file(const wire::ManifestEntry& entry, const io::FileStatus& present) {
  io::FileSystem& files = session_.files();
  const storage::Metadata metadata = metadata_of(entry);
  auto directory = directories_.open(entry.parent);
  if (!directory.ok()) return directory.status();
  const bool moves_owner =
      files.may_set_owner() && (present.uid != metadata.uid || present.gid != metadata.gid);
  // The old tree has it too, and must not be touched.
  if (tree_switch_ != nullptr &&
      (moves_owner || present.mode != metadata.mode || present.mtime != metadata.mtime)) {
    mark("plan_own_copy");
    auto staging = staging_of(entry.parent);
    if (!staging.ok()) return staging.status();
    const bool durable = session_.parameters.durability != Durability::kNone;
    return storage::copy_file(
        files, **directory, **directory, entry.name, metadata,
        {**staging, staging_.next_name(), durable, session_.parameters.read_back});
  }
  // Its time differs where that was not compared.
  return storage::update_metadata_at(files, **directory, entry.name, present, metadata,
                                     /*with_mtime=*/true)
      .status();
}

// Of a directory where none must be: whether it has gone.
Result<bool> Planner::clear_directory(const wire::ManifestEntry& entry) {
  if (tree_switch_ == nullptr) return false;
  auto directory = directories_.open(entry.parent);
  if (!directory.ok()) return directory.status();
  return tree_switch_->makes_way(directories_.path_of(entry.parent, entry.name), **directory,
                                 entry.name);
}

}  // namespace fgsync::transfer
