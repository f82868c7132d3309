#include "transfer/changes.h"

#include <limits>

namespace fgsync::transfer {
namespace {

io::FileType type_of(const wire::ManifestEntry& entry) {
  switch (entry.type) {
    case wire::EntryType::kRegular:
      return io::FileType::kRegular;
    case wire::EntryType::kDirectory:
      return io::FileType::kDirectory;
    case wire::EntryType::kSymlink:
      return io::FileType::kSymlink;
  }
  return io::FileType::kUnknown;
}

}  // namespace

bool may_pass_over(const SessionParameters& parameters) {
  const Selection& selection = parameters.selection;
  const Changes& changes = parameters.changes;
  return changes.update || changes.existing_only || changes.new_only || selection.safe_links ||
         selection.bytes_min > 0 || selection.bytes_max < std::numeric_limits<std::uint64_t>::max();
}

bool is_left_by_changes(const Changes& changes, const wire::ManifestEntry& entry,
                        const io::FileStatus* present) {
  if (present == nullptr) return changes.existing_only;
  if (changes.new_only) {
    return entry.type != wire::EntryType::kDirectory || present->type != io::FileType::kDirectory;
  }
  const io::FileTime announced{entry.mtime_seconds, entry.mtime_nanoseconds};
  return changes.update && entry.type == wire::EntryType::kRegular &&
         present->type == io::FileType::kRegular && present->mtime > announced;
}

bool is_left_by_size(const Selection& selection, const wire::ManifestEntry& entry) {
  return entry.type == wire::EntryType::kRegular &&
         (entry.size < selection.bytes_min || entry.size > selection.bytes_max);
}

EntryDifferences differences_of(const wire::ManifestEntry& entry, const io::FileStatus* present,
                                bool with_owner) {
  using Differences = EntryDifferences;
  if (present == nullptr || present->type != type_of(entry)) return {Differences::kNew};
  Differences differences;
  const auto note = [&](bool differs, std::uint16_t bit) {
    if (differs) differences.add(bit);
  };
  note(entry.type == wire::EntryType::kRegular && present->size != entry.size, Differences::kSize);
  note(present->mtime != io::FileTime{entry.mtime_seconds, entry.mtime_nanoseconds},
       Differences::kTime);
  note(entry.type != wire::EntryType::kSymlink && present->mode != entry.mode, Differences::kMode);
  note(with_owner && present->uid != entry.uid, Differences::kOwner);
  note(with_owner && present->gid != entry.gid, Differences::kGroup);
  return differences;
}

bool counts_as_same(Comparison comparison, const wire::ManifestEntry& entry,
                    const io::FileStatus& present) {
  if (present.type != io::FileType::kRegular || present.size != entry.size) return false;
  if (comparison == Comparison::kSizeAndTime) {
    return present.mtime == io::FileTime{entry.mtime_seconds, entry.mtime_nanoseconds};
  }
  return comparison == Comparison::kSize;
}

}  // namespace fgsync::transfer
