#include "receipt/receipt_index.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace fgsync::receipt {
namespace {

constexpr std::size_t kSlotsMin = 1024;

// Three quarters full, so that a probe is short.
std::uint64_t room(std::uint64_t slots) { return slots / 4 * 3; }

bool is_described(const io::FileStatus& present, const FileRecord& record) {
  return present.type == io::FileType::kRegular && present.size == record.size &&
         present.mtime == record.mtime;
}

}  // namespace

ReceiptIndex::ReceiptIndex(const ReceiptReader& reader, const LogSummary& summary,
                           std::size_t slots_max)
    : reader_(reader) {
  FGSYNC_ASSERT(std::has_single_bit(slots_max) && slots_max >= kSlotsMin);
  std::size_t slots = kSlotsMin;
  while (slots < slots_max && room(slots) < summary.records) slots *= 2;
  slots_.resize(slots);
  // With two parts and more, a little room for parts that are larger than others: hashes spread so
  // evenly that a part of half a million is hardly ever 1 % above the mean.
  const std::uint64_t usable = summary.records <= room(slots) ? room(slots) : slots / 16 * 11;
  parts_ = std::max<std::uint64_t>(1, (summary.records + usable - 1) / usable);
}

template <typename Slots, typename Visit>
std::size_t ReceiptIndex::probe(Slots& slots, std::uint64_t hash, Visit visit) {
  const std::size_t mask = slots.size() - 1;
  // The low bits have chosen the part.
  std::size_t at = std::size_t(hash >> 32) & mask;
  for (; slots[at].offset != 0; at = (at + 1) & mask) {
    if (slots[at].hash == hash) visit(slots[at]);
  }
  return at;
}

void ReceiptIndex::insert(std::uint64_t hash, std::uint64_t offset) {
  bool replaced = false;
  const std::size_t empty = probe(slots_, hash, [&](Slot& slot) {
    if (is_sure(offset)) slot.offset = offset;
    replaced = is_sure(offset);
  });
  if (!replaced) slots_[empty] = {hash, offset};
}

Status ReceiptIndex::load(std::uint64_t part, std::uint64_t trusted_end) {
  part_ = part;
  trusted_end_ = trusted_end;
  std::ranges::fill(slots_, Slot{});
  std::size_t used = 0;
  return reader_.for_each([&](const PlacedRecord& placed) {
    const std::string* const path = path_of(placed.record);
    if (path == nullptr) return;
    const std::uint64_t hash = path_hash(*path);
    if (!is_of_part(hash)) return;
    // The receipt may have grown since it was summarized: what is beyond the room is left out.
    if (used >= slots_.size() - 1) return;
    ++used;
    insert(hash, placed.offset);
  });
}

std::vector<std::uint64_t> ReceiptIndex::offsets_of(std::uint64_t hash) const {
  std::vector<std::uint64_t> offsets;
  probe(slots_, hash, [&](const Slot& slot) { offsets.push_back(slot.offset & ~kSeenBit); });
  return offsets;
}

Result<Finding> ReceiptIndex::find(const std::string& path,
                                   const std::optional<io::FileStatus>& present) const {
  Finding finding;
  const bool is_file = present && present->type == io::FileType::kRegular;
  for (const std::uint64_t offset : offsets_of(path_hash(path))) {
    Result<Record> record = reader_.at(offset);
    if (!record.ok()) return record.status();
    const std::string* const recorded = path_of(*record);
    if (recorded == nullptr || *recorded != path) continue;  // another path with the same hash
    auto* const file = std::get_if<FileRecord>(&*record);
    if (file == nullptr) {
      // An unsure one has come true where there is no file any more.
      if (is_sure(offset) || !is_file) finding.expected.reset();
      continue;
    }
    if (present && is_described(*present, *file)) finding.matching = *file;
    if (is_sure(offset)) finding.expected = std::move(*file);
  }
  return finding;
}

void ReceiptIndex::mark_seen(std::uint64_t hash) {
  probe(slots_, hash, [](Slot& slot) { slot.offset |= kSeenBit; });
}

Result<std::size_t> ReceiptIndex::next_unseen(std::size_t from, std::size_t count,
                                              std::vector<FileRecord>& unseen) const {
  std::size_t at = from;
  for (std::size_t found = 0; at < slots_.size() && found < count; ++at) {
    const Slot& slot = slots_[at];
    if (slot.offset == 0 || (slot.offset & kSeenBit) != 0 || !is_sure(slot.offset)) continue;
    Result<Record> record = reader_.at(slot.offset);
    if (!record.ok()) return record.status();
    const std::string* const path = path_of(*record);
    if (path == nullptr) continue;
    Result<Finding> finding = find(*path, std::nullopt);
    if (!finding.ok()) return finding.status();
    if (!finding->expected) continue;
    unseen.push_back(std::move(*finding->expected));
    ++found;
  }
  return at;
}

}  // namespace fgsync::receipt
