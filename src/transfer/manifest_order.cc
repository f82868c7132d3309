#include "transfer/manifest_order.h"

#include <limits>

namespace fgsync::transfer {

Status ManifestOrder::take(const wire::ManifestEntry& entry) {
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

bool ManifestOrder::may_stand_in_root(const wire::ManifestEntry& entry) const {
  if (replica_of_contents_) return true;
  const auto expected = expected_.find(entry.name);
  return entry.id != 0 && expected != expected_.end() && expected->second == entry.type;
}

}  // namespace fgsync::transfer
