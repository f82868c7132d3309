// What counts as changed, and what is left alone whether it has or not: judged by the receiver, of
// each announced entry and what stands in its place.
#pragma once

#include <algorithm>

#include "io/file_system.h"
#include "selection/link_target.h"
#include "transfer/session.h"
#include "wire/message.h"

namespace fgsync::transfer {

// Whether this run passes anything over at all.
bool may_pass_over(const SessionParameters& parameters);

// Whether the entry is left out, or what stands in its place is left alone. `present`: that;
// nullptr: nothing.
bool is_left_by_changes(const Changes& changes, const wire::ManifestEntry& entry,
                        const io::FileStatus* present);
bool is_left_by_size(const Selection& selection, const wire::ManifestEntry& entry);

// All of these. `path_of` gives the entry's path below the target's root; it is asked only where a
// symlink needs it.
template <typename PathOf>
bool is_passed_over(const SessionParameters& parameters, const wire::ManifestEntry& entry,
                    const io::FileStatus* present, PathOf path_of) {
  if (is_left_by_changes(parameters.changes, entry, present)) return true;
  if (is_left_by_size(parameters.selection, entry)) return true;
  if (!parameters.selection.safe_links || entry.type != wire::EntryType::kSymlink) return false;
  const std::string path = path_of();
  const auto depth = std::size_t(std::count(path.begin(), path.end(), '/'));
  return selection::leads_out(entry.symlink_target, depth);
}

// In what an entry differs from what stands in its place (nullptr: nothing), as far as metadata
// tells. Owners count only `with_owner`.
EntryDifferences differences_of(const wire::ManifestEntry& entry, const io::FileStatus* present,
                                bool with_owner);

// Whether what stands in a regular file's place needs no contents. Contents themselves are not
// looked at here.
bool counts_as_same(Comparison comparison, const wire::ManifestEntry& entry,
                    const io::FileStatus& present);

}  // namespace fgsync::transfer
