// Finds the records of a path in memory of a fixed size. A receipt with more records than fit is
// taken in several passes, each over the paths of one part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fgsync/status.h"
#include "io/file_system.h"
#include "receipt/receipt_reader.h"

namespace fgsync::receipt {

// What a receipt says about a path and what stands there.
struct Finding {
  // The record that describes what stands there, by size and mtime.
  std::optional<FileRecord> matching;
  // Else what should stand there; nothing if the receipt doesn't know.
  std::optional<FileRecord> expected;
};

// Not thread-safe. load(), find() and the visits block: they read the receipt.
class ReceiptIndex {
 public:
  // For a receipt of so many records, in at most `slots_max` slots of 16 bytes each.
  ReceiptIndex(const ReceiptReader& reader, const LogSummary& summary, std::size_t slots_max);

  std::uint64_t parts() const { return parts_; }
  // Takes in the records of one part, in place of another one's. `trusted_end` is where the receipt
  // ceases to be sure: records behind it count only where they describe what stands at their path.
  Status load(std::uint64_t part, std::uint64_t trusted_end);
  bool is_of_part(std::uint64_t hash) const { return hash % parts_ == part_; }

  // By what stands at the path; nullopt if nothing does.
  Result<Finding> find(const std::string& path, const std::optional<io::FileStatus>& present) const;
  // Offsets of the records that may be of a path with this hash, in their order: at most one that
  // is sure, and all others.
  std::vector<std::uint64_t> offsets_of(std::uint64_t hash) const;
  bool is_sure(std::uint64_t offset) const { return offset < trusted_end_; }

  void mark_seen(std::uint64_t hash);
  // Records of files of this part that are expected and have not been marked: from slot `from` on,
  // about `count` of them. Gives where to go on; slots() at the end.
  Result<std::size_t> next_unseen(std::size_t from, std::size_t count,
                                  std::vector<FileRecord>& unseen) const;
  std::size_t slots() const { return slots_.size(); }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint64_t offset = 0;  // 0: empty, since no record stands there; kSeenBit besides
  };
  static constexpr std::uint64_t kSeenBit = std::uint64_t{1} << 63;
  // Calls `visit(slot)` for each slot of this hash; ends with the empty slot behind them.
  template <typename Slots, typename Visit>
  static std::size_t probe(Slots& slots, std::uint64_t hash, Visit visit);
  void insert(std::uint64_t hash, std::uint64_t offset);

  const ReceiptReader& reader_;
  std::vector<Slot> slots_;
  std::uint64_t parts_ = 1;
  std::uint64_t part_ = 0;
  std::uint64_t trusted_end_ = 0;
};

}  // namespace fgsync::receipt
