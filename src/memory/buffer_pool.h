// The buffer pool: the only back-pressure of the data road. All slots are made at start from one
// aligned region, so that the same slot can be read into directly, sealed in place, registered with
// a ring or a device, and written directly. Whoever needs a slot and finds none waits; nothing else
// limits how much is in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "fgsync/status.h"

namespace fgsync {

class BufferPool;

// A move-only handle to one slot; gives it back to the pool when it goes away. May be passed
// between threads, used by one at a time. `size` is how much of it is in use.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { release(); }

  explicit operator bool() const { return pool_ != nullptr; }
  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const;
  void resize(std::size_t size);
  std::span<std::byte> bytes() const { return {data_, size_}; }
  std::span<std::byte> whole() const { return {data_, capacity()}; }
  void release();

 private:
  friend class BufferPool;
  Buffer(BufferPool* pool, std::byte* data) : pool_(pool), data_(data) {}
  BufferPool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Somebody who waits for a slot. `on_buffer` is called once, on the thread that released the slot.
class BufferWaiter {
 public:
  virtual ~BufferWaiter() = default;
  virtual void on_buffer(Buffer buffer) = 0;
};

// Thread-safe. Must outlive its buffers.
class BufferPool {
 public:
  // `slot_bytes` is rounded up to limits::kSlotAlignment. kIoError where the memory cannot be had.
  static Result<std::unique_ptr<BufferPool>> create(std::size_t slot_bytes, std::size_t slot_count);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  std::size_t slot_bytes() const { return slot_bytes_; }
  std::size_t slot_count() const { return slot_count_; }
  std::size_t free_count() const;
  // All slots as one range of memory, for registration.
  std::span<std::byte> region() const { return {region_, slot_bytes_ * slot_count_}; }

  std::optional<Buffer> try_acquire();
  // A slot at once, or the waiter is queued (first come, first served) and told later.
  std::optional<Buffer> acquire_or_wait(BufferWaiter& waiter);

 private:
  friend class Buffer;
  BufferPool(std::byte* region, std::size_t slot_bytes, std::size_t slot_count);
  void give_back(std::byte* data);

  std::byte* const region_;
  const std::size_t slot_bytes_;
  const std::size_t slot_count_;
  mutable std::mutex mutex_;
  std::vector<std::byte*> free_;       // guarded by mutex_; the last one used is the first to go
  std::deque<BufferWaiter*> waiters_;  // guarded by mutex_
};

}  // namespace fgsync
