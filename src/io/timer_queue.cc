#include "io/timer_queue.h"

#include <tuple>

#include "base/assert.h"

namespace fgsync::io {

bool TimerQueue::earlier(const Entry& left, const Entry& right) {
  return std::tie(left.deadline, left.sequence) < std::tie(right.deadline, right.sequence);
}

void TimerQueue::place(std::size_t index, const Entry& entry) {
  heap_[index] = entry;
  entry.operation->timer_index = index;
}

void TimerQueue::add(Operation& operation) {
  heap_.push_back({operation.deadline, sequence_++, &operation});
  sift_up(heap_.size() - 1);
}

bool TimerQueue::remove(Operation& operation) {
  const std::size_t index = operation.timer_index;
  if (index >= heap_.size() || heap_[index].operation != &operation) return false;
  erase(index);
  return true;
}

std::optional<TimePoint> TimerQueue::next_deadline() const {
  if (heap_.empty()) return std::nullopt;
  return heap_.front().deadline;
}

Operation* TimerQueue::pop_expired(TimePoint now) {
  if (heap_.empty() || heap_.front().deadline > now) return nullptr;
  Operation* const operation = heap_.front().operation;
  erase(0);
  return operation;
}

void TimerQueue::sift_up(std::size_t index) {
  const Entry entry = heap_[index];
  while (index > 0) {
    const std::size_t parent = (index - 1) / 2;
    if (!earlier(entry, heap_[parent])) break;
    place(index, heap_[parent]);
    index = parent;
  }
  place(index, entry);
}

void TimerQueue::sift_down(std::size_t index) {
  const Entry entry = heap_[index];
  for (;;) {
    std::size_t child = 2 * index + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && earlier(heap_[child + 1], heap_[child])) ++child;
    if (!earlier(heap_[child], entry)) break;
    place(index, heap_[child]);
    index = child;
  }
  place(index, entry);
}

void TimerQueue::erase(std::size_t index) {
  FGSYNC_ASSERT(index < heap_.size());
  const Entry last = heap_.back();
  heap_.pop_back();
  if (index == heap_.size()) return;
  place(index, last);
  sift_up(index);
  sift_down(last.operation->timer_index);
}

}  // namespace fgsync::io
