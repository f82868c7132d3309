#include "transfer/chunk_scheduler.h"

#include <algorithm>

#include "base/limits.h"

namespace fgsync::transfer {

void ChunkScheduler::add(std::vector<std::shared_ptr<OutgoingFile>> files) {
  std::lock_guard lock(mutex_);
  for (std::shared_ptr<OutgoingFile>& file : files) {
    if (file->size() > packed_file_bytes_max_) {
      large_.push(Large{std::move(file), 0});
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
}

void ChunkScheduler::close() {
  std::lock_guard lock(mutex_);
  finished_ = true;
  large_ = {};
  active_.clear();
  small_.clear();
  serve_waiters();
}

std::optional<WorkItem> ChunkScheduler::take() {
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
    large.next_offset += item.length;
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

void ChunkScheduler::serve_waiters() {
  while (!waiting_.empty()) {
    std::optional<WorkItem> item = take();
    if (!item && !finished_) return;
    Awaiter* waiter = waiting_.front();
    waiting_.pop_front();
    waiter->item_ = std::move(item);
    waiter->io_.post(waiter->coroutine_);
  }
}

bool ChunkScheduler::Awaiter::await_suspend(std::coroutine_handle<> coroutine) {
  std::lock_guard lock(scheduler_.mutex_);
  item_ = scheduler_.take();
  if (item_ || scheduler_.finished_) return false;
  coroutine_ = coroutine;
  scheduler_.waiting_.push_back(this);
  return true;
}

}  // namespace fgsync::transfer
