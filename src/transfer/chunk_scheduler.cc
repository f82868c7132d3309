#include "transfer/chunk_scheduler.h"

#include <algorithm>

#include "base/limits.h"

namespace fgsync::transfer {

void ChunkScheduler::add(std::vector<std::shared_ptr<OutgoingFile>> files) {
  std::lock_guard lock(mutex_);
  for (std::shared_ptr<OutgoingFile>& file : files) {
    if (file->size() > packed_file_bytes_max_) {
      const std::uint64_t first = file->next_missing(0);
      large_.push(Large{std::move(file), first});
    } else {
      small_.push_back(std::move(file));
    }
  }
  serve_waiters();
}

void ChunkScheduler::finish() {
  std::lock_guard lock(mutex_);
  finished_ = true;
  serve_waiters();
  look_whether_drained();
}

void ChunkScheduler::close() {
  std::lock_guard lock(mutex_);
  returned_.clear();
  large_ = {};
  active_.clear();
  small_.clear();
  closed_ = true;
  serve_waiters();
  drained_.set();
}

void ChunkScheduler::settle(Lanes& lanes, std::size_t count) {
  std::lock_guard lock(mutex_);
  forget_unsettled(lanes, count);
  serve_waiters();
  look_whether_drained();
}

void ChunkScheduler::take_back(Lanes& lanes, std::vector<WorkItem> items) {
  std::lock_guard lock(mutex_);
  forget_unsettled(lanes, items.size());
  returned_.insert(returned_.begin(), std::make_move_iterator(items.begin()),
                   std::make_move_iterator(items.end()));
  serve_waiters();
  look_whether_drained();
}

void ChunkScheduler::forget_unsettled(Lanes& lanes, std::size_t count) {
  FGSYNC_ASSERT(lanes.unsettled >= count);
  lanes.unsettled -= count;
  unsettled_ -= count;
  if (lanes.released) unsettled_lost_ -= count;
}

void ChunkScheduler::release(Lanes& lanes) {
  std::lock_guard lock(mutex_);
  if (!std::exchange(lanes.released, true)) unsettled_lost_ += lanes.unsettled;
  serve_waiters();
}

void ChunkScheduler::admit(Lanes& lanes) {
  std::lock_guard lock(mutex_);
  FGSYNC_ASSERT(lanes.unsettled == 0);
  lanes.released = false;
}

bool ChunkScheduler::is_released(const Lanes& lanes) const {
  std::lock_guard lock(mutex_);
  return lanes.released;
}

std::optional<WorkItem> ChunkScheduler::take() {
  if (!returned_.empty()) {
    std::optional<WorkItem> item = std::move(returned_.front());
    returned_.pop_front();
    return item;
  }
  while (active_.size() < kFilesAtATime && !large_.empty()) {
    active_.push_back(large_.top());
    large_.pop();
  }
  if (!active_.empty()) {
    Large large = std::move(active_.front());
    active_.pop_front();
    WorkItem item;
    item.file = large.file;
    item.offset = large.next_offset;
    item.length =
        std::uint32_t(std::min<std::uint64_t>(chunk_bytes_, large.file->size() - item.offset));
    large.next_offset = large.file->next_missing(item.offset + item.length);
    if (large.next_offset < large.file->size()) active_.push_back(std::move(large));
    return item;
  }
  if (small_.empty()) return std::nullopt;
  WorkItem item;
  std::size_t bytes = 0;
  while (!small_.empty() && item.pack.size() < limits::kPackEntriesMax &&
         bytes < limits::kPackBytesTarget) {
    bytes += small_.front()->size();
    item.pack.push_back(std::move(small_.front()));
    small_.pop_front();
  }
  return item;
}

bool ChunkScheduler::serve(Lanes& lanes, std::optional<WorkItem>& item) {
  if (closed_ || lanes.released) return true;
  if (lanes.unsettled >= limits::kUnsettledFramesMax) return false;
  item = take();
  if (!item) return finished_ && unsettled_lost_ == 0;
  ++lanes.unsettled;
  ++unsettled_;
  return true;
}

void ChunkScheduler::serve_waiters() {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    Awaiter& waiter = **next;
    if (serve(waiter.lanes_, waiter.item_)) {
      next = waiting_.erase(next);
      waiter.io_.post(waiter.coroutine_);
    } else {
      ++next;
    }
  }
}

void ChunkScheduler::look_whether_drained() {
  const bool empty = returned_.empty() && active_.empty() && large_.empty() && small_.empty();
  if (finished_ && empty && unsettled_ == 0) drained_.set();
}

bool ChunkScheduler::Awaiter::await_suspend(std::coroutine_handle<> coroutine) {
  std::lock_guard lock(scheduler_.mutex_);
  if (scheduler_.serve(lanes_, item_)) return false;
  coroutine_ = coroutine;
  scheduler_.waiting_.push_back(this);
  return true;
}

}  // namespace fgsync::transfer
