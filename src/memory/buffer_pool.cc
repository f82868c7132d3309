#include "memory/buffer_pool.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/assert.h"
#include "base/limits.h"

namespace fgsync {

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    release();
    pool_ = std::exchange(other.pool_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

std::size_t Buffer::capacity() const { return pool_ ? pool_->slot_bytes() : 0; }

void Buffer::resize(std::size_t size) {
  FGSYNC_ASSERT(size <= capacity());
  size_ = size;
}

void Buffer::release() {
  if (!pool_) return;
  std::exchange(pool_, nullptr)->give_back(std::exchange(data_, nullptr));
  size_ = 0;
}

Result<std::unique_ptr<BufferPool>> BufferPool::create(std::size_t slot_bytes,
                                                       std::size_t slot_count) {
  FGSYNC_ASSERT(slot_bytes > 0 && slot_count > 0);
  const std::size_t alignment = limits::kSlotAlignment;
  slot_bytes = (slot_bytes + alignment - 1) / alignment * alignment;
  void* region = ::mmap(nullptr, slot_bytes * slot_count, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (region == MAP_FAILED) return Status::from_errno(errno, "allocating the buffer pool");
  // Large pages spare most of the pool's page faults and TLB misses; a kernel without them ignores
  // this.
  (void)::madvise(region, slot_bytes * slot_count, MADV_HUGEPAGE);
  return std::unique_ptr<BufferPool>(
      new BufferPool(static_cast<std::byte*>(region), slot_bytes, slot_count));
}

BufferPool::BufferPool(std::byte* region, std::size_t slot_bytes, std::size_t slot_count)
    : region_(region), slot_bytes_(slot_bytes), slot_count_(slot_count) {
  free_.reserve(slot_count);
  for (std::size_t i = slot_count; i > 0; --i) free_.push_back(region + (i - 1) * slot_bytes);
}

BufferPool::~BufferPool() {
  FGSYNC_ASSERT(free_.size() == slot_count_);  // every buffer came back
  ::munmap(region_, slot_bytes_ * slot_count_);
}

std::size_t BufferPool::free_count() const {
  std::lock_guard lock(mutex_);
  return free_.size();
}

std::optional<Buffer> BufferPool::try_acquire() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) return std::nullopt;
  std::byte* data = free_.back();
  free_.pop_back();
  return Buffer(this, data);
}

std::optional<Buffer> BufferPool::acquire_or_wait(BufferWaiter& waiter) {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    waiters_.push_back(&waiter);
    return std::nullopt;
  }
  std::byte* data = free_.back();
  free_.pop_back();
  return Buffer(this, data);
}

void BufferPool::give_back(std::byte* data) {
  BufferWaiter* waiter = nullptr;
  {
    std::lock_guard lock(mutex_);
    FGSYNC_ASSERT(free_.size() < slot_count_);
    if (waiters_.empty()) {
      free_.push_back(data);
      return;
    }
    waiter = waiters_.front();
    waiters_.pop_front();
  }
  waiter->on_buffer(Buffer(this, data));
}

}  // namespace fgsync
