// Sleeping operations, the earliest first.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "io/io.h"

namespace fgsync::io {

// A binary heap whose entries know their place, so that a sleep is cancelled in O(log n) and
// nothing stale stays inside. Equal deadlines end in the order of their start. Not thread-safe.
class TimerQueue {
 public:
  void add(Operation& operation);
  // False when the operation is not inside.
  bool remove(Operation& operation);
  std::optional<TimePoint> next_deadline() const;
  // Takes out the earliest operation whose deadline has come; nullptr when there is none.
  Operation* pop_expired(TimePoint now);

 private:
  struct Entry {
    TimePoint deadline;
    std::uint64_t sequence;
    Operation* operation;
  };
  static bool earlier(const Entry& left, const Entry& right);
  void place(std::size_t index, const Entry& entry);
  void sift_up(std::size_t index);
  void sift_down(std::size_t index);
  void erase(std::size_t index);

  std::vector<Entry> heap_;
  std::uint64_t sequence_ = 0;
};

}  // namespace fgsync::io
