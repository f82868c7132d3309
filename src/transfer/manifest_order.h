// What every manifest must be, whatever its receiver does with it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "storage/directory_tree.h"
#include "transfer/target_mapping.h"
#include "wire/message.h"

namespace fgsync::transfer {

// Not thread-safe.
class ManifestOrder {
 public:
  // Announced directories are entered into `directories`.
  ManifestOrder(storage::DirectoryTree& directories, const ResolvedTarget& target)
      : directories_(directories),
        replica_of_contents_(target.accept.replica_of_contents),
        expected_(target.expected) {}

  // The next entry. kProtocolError if it makes no sense (unknown parent, a name below a file, ids
  // not ascending) or would stand in the root uninvited.
  Status take(const wire::ManifestEntry& entry);

 private:
  bool may_stand_in_root(const wire::ManifestEntry& entry) const;

  storage::DirectoryTree& directories_;
  const bool replica_of_contents_;
  const std::map<std::string, wire::EntryType> expected_;
  std::uint64_t next_id_ = 0;  // the least that the next entry may have
};

}  // namespace fgsync::transfer
