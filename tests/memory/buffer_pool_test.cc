#include "memory/buffer_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "base/limits.h"

namespace fgsync {
namespace {

std::unique_ptr<BufferPool> pool_of(std::size_t slot_bytes, std::size_t slot_count) {
  auto pool = BufferPool::create(slot_bytes, slot_count);
  EXPECT_TRUE(pool.ok());
  return std::move(*pool);
}

// Keeps what it is given.
class KeepingWaiter final : public BufferWaiter {
 public:
  void on_buffer(Buffer given) override { buffer = std::move(given); }
  Buffer buffer;
};

TEST(BufferPoolTest, SlotsAreAlignedDistinctAndInsideTheRegion) {
  const auto pool = pool_of(5000, 7);
  EXPECT_EQ(pool->slot_bytes(), 8192U);
  EXPECT_EQ(pool->region().size(), 7U * 8192U);
  std::vector<Buffer> buffers;
  std::set<std::byte*> addresses;
  while (auto buffer = pool->try_acquire()) buffers.push_back(std::move(*buffer));
  ASSERT_EQ(buffers.size(), 7U);
  for (const Buffer& buffer : buffers) {
    addresses.insert(buffer.data());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % limits::kSlotAlignment, 0U);
    EXPECT_GE(buffer.data(), pool->region().data());
    EXPECT_LE(buffer.data() + buffer.capacity(), pool->region().data() + pool->region().size());
  }
  EXPECT_EQ(addresses.size(), 7U);
}

TEST(BufferPoolTest, ABufferGoesBackOnceHoweverItIsMoved) {
  const auto pool = pool_of(4096, 2);
  Buffer first = *pool->try_acquire();
  first.resize(10);
  Buffer second = std::move(first);
  EXPECT_FALSE(bool(first));  // NOLINT: a moved-from buffer is empty by contract
  EXPECT_EQ(second.size(), 10U);
  Buffer third = *pool->try_acquire();
  EXPECT_EQ(pool->free_count(), 0U);
  third = std::move(second);
  EXPECT_EQ(pool->free_count(), 1U);
  third.release();
  third.release();
  EXPECT_EQ(pool->free_count(), 2U);
}

TEST(BufferPoolTest, ANewBufferIsEmptyAndHasItsWholeCapacity) {
  const auto pool = pool_of(4096, 1);
  Buffer buffer = *pool->try_acquire();
  buffer.resize(4096);
  buffer.release();
  Buffer again = *pool->try_acquire();
  EXPECT_EQ(again.size(), 0U);
  EXPECT_EQ(again.bytes().size(), 0U);
  EXPECT_EQ(again.whole().size(), 4096U);
}

TEST(BufferPoolTest, WaitersAreServedInTheOrderTheyCame) {
  const auto pool = pool_of(4096, 1);
  KeepingWaiter first;
  KeepingWaiter second;
  Buffer held = *pool->try_acquire();
  EXPECT_FALSE(pool->acquire_or_wait(first));
  EXPECT_FALSE(pool->acquire_or_wait(second));
  held.release();
  EXPECT_TRUE(bool(first.buffer));
  EXPECT_FALSE(bool(second.buffer));
  first.buffer.release();
  EXPECT_TRUE(bool(second.buffer));
  EXPECT_EQ(pool->free_count(), 0U);
}

TEST(BufferPoolTest, AFreeSlotIsGivenWithoutWaiting) {
  const auto pool = pool_of(4096, 1);
  KeepingWaiter waiter;
  const auto buffer = pool->acquire_or_wait(waiter);
  EXPECT_TRUE(buffer.has_value());
  EXPECT_FALSE(bool(waiter.buffer));
}

TEST(BufferPoolTest, ThreadsNeverShareASlot) {
  const auto pool = pool_of(4096, 3);
  std::atomic<int> uses = 0;
  std::vector<std::thread> threads;
  for (int name = 0; name < 4; ++name) {
    threads.emplace_back([&, name] {
      while (uses < 2000) {
        auto buffer = pool->try_acquire();
        if (!buffer) continue;
        *buffer->data() = static_cast<std::byte>(name);
        std::this_thread::yield();
        EXPECT_EQ(*buffer->data(), static_cast<std::byte>(name));
        ++uses;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool->free_count(), 3U);
}

TEST(BufferPoolTest, MemoryThatCannotBeHadIsAnError) {
  const auto pool = BufferPool::create(std::size_t{1} << 50, 16);
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.status().code(), ErrorCode::kIoError);
}

TEST(BufferPoolDeathTest, APoolThatGoesBeforeItsBuffersIsAMistake) {
  EXPECT_DEATH(
      {
        auto pool = pool_of(4096, 1);
        auto buffer = pool->try_acquire();
        pool.reset();
      },
      "assertion failed");
}

}  // namespace
}  // namespace fgsync
