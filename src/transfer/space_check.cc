#include "transfer/space_check.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "base/mark.h"

namespace fgsync::transfer {

// One file system of the target.
struct SpaceClaim::Place {
  std::mutex mutex;
  // Guarded by mutex: of all claims that have not ended.
  std::uint64_t bytes = 0;  // not yet written
  std::uint64_t inodes = 0;
  std::uint64_t bytes_back = 0;
  std::uint64_t inodes_back = 0;
  // SpaceCheck's own.
  storage::DirectoryReference staging;
  std::uint64_t block_bytes = 1;
  std::uint64_t largest =
      0;  // of what was claimed since the last judgement, beside its old version
  bool is_due = false;
};

namespace {

// What is left of a need when so much is given back.
std::uint64_t less(std::uint64_t need, std::uint64_t back) { return need > back ? need - back : 0; }

}  // namespace

SpaceClaim::SpaceClaim(std::shared_ptr<Place> place, const Amount& amount)
    : place_(std::move(place)), amount_(amount) {}

void SpaceClaim::written() {
  if (!place_ || std::exchange(written_, true)) return;
  const std::lock_guard lock(place_->mutex);
  place_->bytes -= amount_.bytes;
  place_->inodes -= 1;
}

void SpaceClaim::end() {
  if (!place_) return;
  written();
  {
    const std::lock_guard lock(place_->mutex);
    place_->bytes_back -= amount_.bytes_back;
    place_->inodes_back -= amount_.replaces ? 1 : 0;
  }
  place_.reset();
}

SpaceClaim SpaceCheck::claim(const storage::DirectoryReference& staging, std::uint64_t bytes,
                             std::optional<std::uint64_t> replaced) {
  const auto known = std::find_if(places_.begin(), places_.end(),
                                  [&](const auto& place) { return place->staging == staging; });
  std::shared_ptr<SpaceClaim::Place> place;
  if (known != places_.end()) {
    place = *known;
  } else {
    place = places_.emplace_back(std::make_shared<SpaceClaim::Place>());
    place->staging = staging;
    const auto space = files_.space(*staging);
    if (space.ok()) place->block_bytes = std::max<std::uint64_t>(space->block_bytes, 1);
  }
  const std::uint64_t block = place->block_bytes;
  const auto in_blocks = [block](std::uint64_t size) { return (size + block - 1) / block * block; };
  SpaceClaim::Amount amount{in_blocks(bytes), in_blocks(replaced.value_or(0)),
                            replaced.has_value()};
  const std::lock_guard lock(place->mutex);
  place->bytes += amount.bytes;
  place->inodes += 1;
  place->bytes_back += amount.bytes_back;
  place->inodes_back += amount.replaces ? 1 : 0;
  if (bytes > 0) place->largest = std::max(place->largest, amount.bytes + amount.bytes_back);
  place->is_due = true;
  return SpaceClaim(place, amount);
}

Status SpaceCheck::judge() {
  for (const auto& place : places_) {
    if (!std::exchange(place->is_due, false)) continue;
    const auto space = files_.space(*place->staging);
    if (!space.ok()) continue;
    const std::lock_guard lock(place->mutex);
    // All together; and each by itself, while its old version still stands and all others have
    // given back theirs.
    const std::uint64_t bytes = std::max(less(place->bytes, place->bytes_back),
                                         less(std::exchange(place->largest, 0), place->bytes_back));
    const std::uint64_t inodes = std::max(less(place->inodes, place->inodes_back),
                                          std::min<std::uint64_t>(place->inodes, 1));
    const bool is_full = space->bytes_total != 0 && bytes > space->bytes_available;
    const bool has_no_inodes = space->inodes_total != 0 && inodes > space->inodes_available;
    if (!is_full && !has_no_inodes) continue;
    mark("space_does_not_fit");
    const std::uint64_t needed = is_full ? bytes : inodes;
    const std::uint64_t available = is_full ? space->bytes_available : space->inodes_available;
    const Status why = Status::from_errno(ENOSPC, "planning");
    return Status(ErrorCode::kNoSpace,
                  root_display_ + ": " + why.message() + ": " + std::to_string(needed) +
                      (is_full ? " bytes" : " inodes") + " needed, " + std::to_string(available) +
                      " available",
                  ENOSPC);
  }
  return Status();
}

}  // namespace fgsync::transfer
