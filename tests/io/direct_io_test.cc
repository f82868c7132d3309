// read_direct and write_direct, with and without registered memory.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "engine_fixture.h"
#include "memory/buffer_pool.h"

namespace fgsync::io::testing {
namespace {

constexpr std::size_t kSlotBytes = 1024 * 1024;

class DirectIoTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_NE(::mkdtemp(path_), nullptr);
    FileSystem& files = runtime().environment().files();
    auto directory = files.open_path(path_);
    ASSERT_TRUE(directory.ok()) << directory.status().message();
    directory_ = std::move(*directory);
    auto file = files.open_file(directory_, "file", OpenMode::kCreateDirect);
    if (!file.ok()) {
      GTEST_SKIP() << "no direct I/O on the file system of " << path_ << ": "
                   << file.status().message();
    }
    file_ = std::move(*file);
    auto pool = BufferPool::create(kSlotBytes, 8);
    ASSERT_TRUE(pool.ok());
    pool_ = std::move(*pool);
  }
  void TearDown() override {
    ::unlink((std::string(path_) + "/file").c_str());
    ::rmdir(path_);
  }

  const FileHandle& file() { return file_; }
  BufferPool& pool() { return *pool_; }
  std::string file_path() const { return std::string(path_) + "/file"; }

 private:
  char path_[32] = "/tmp/fgsync-direct-XXXXXX";
  FileHandle directory_;
  FileHandle file_;
  std::unique_ptr<BufferPool> pool_;
};
FGSYNC_FOR_EACH_ENGINE(DirectIoTest);

Task<void> write_slot(Io& io, const FileHandle& file, BufferPool& pool, std::size_t index) {
  Buffer buffer = co_await AcquireBuffer(pool, io);
  buffer.resize(kSlotBytes);
  const std::vector<std::byte> bytes = pattern(kSlotBytes, index);
  std::memcpy(buffer.data(), bytes.data(), bytes.size());
  const Status written = co_await write_direct(io, file, buffer.bytes(), index * kSlotBytes);
  EXPECT_TRUE(written.ok()) << written.message();
}

Task<void> read_slot(Io& io, const FileHandle& file, BufferPool& pool, std::size_t index) {
  Buffer buffer = co_await AcquireBuffer(pool, io);
  const Result<std::size_t> count =
      co_await read_direct(io, file, buffer.whole(), index * kSlotBytes);
  EXPECT_TRUE(count.ok()) << count.status().message();
  if (!count.ok()) co_return;
  EXPECT_EQ(*count, kSlotBytes);
  const std::vector<std::byte> expected = pattern(kSlotBytes, index);
  EXPECT_EQ(std::memcmp(buffer.data(), expected.data(), expected.size()), 0);
}

Task<void> write_and_read_back(Io& io, const FileHandle& file, BufferPool& pool, bool registered) {
  co_await resume_on(io);
  if (registered) io.register_region(pool.region());
  TaskGroup group;
  for (std::size_t i = 0; i < 24; ++i) group.spawn(io, write_slot(io, file, pool, i));
  co_await group.join(io);
  for (std::size_t i = 0; i < 24; ++i) group.spawn(io, read_slot(io, file, pool, i));
  co_await group.join(io);
}

TEST_P(DirectIoTest, WhatIsWrittenAtDepthIsReadBack) {
  runtime().run(write_and_read_back(runtime().control(), file(), pool(), false));
  struct stat status {};
  ASSERT_EQ(::stat(file_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_size, off_t{24 * kSlotBytes});
}

TEST_P(DirectIoTest, RegisteredMemoryServesTheSame) {
  runtime().run(write_and_read_back(runtime().control(), file(), pool(), true));
}

// A process has one session after the other, each with a pool of its own, which is likely to be
// given the same address.
Task<void> write_and_read_back_with_pools(Io& io, const FileHandle& file) {
  for (int i = 0; i < 3; ++i) {
    auto pool = BufferPool::create(kSlotBytes, 8);
    EXPECT_TRUE(pool.ok());
    co_await write_and_read_back(io, file, **pool, true);
  }
}

TEST_P(DirectIoTest, MemoryRegisteredLaterTakesTheOthersPlace) {
  runtime().run(write_and_read_back_with_pools(runtime().control(), file()));
}

Task<void> read_near_the_end(Io& io, const FileHandle& file, BufferPool& pool) {
  Buffer buffer = co_await AcquireBuffer(pool, io);
  const Result<std::size_t> tail = co_await read_direct(io, file, buffer.whole(), 0);
  EXPECT_TRUE(tail.ok() && *tail == 10'000) << tail.status().message();
  const Result<std::size_t> past = co_await read_direct(io, file, buffer.whole(), kSlotBytes);
  EXPECT_TRUE(past.ok() && *past == 0) << past.status().message();
}

TEST_P(DirectIoTest, AReadEndsShortWithTheFile) {
  ASSERT_EQ(::truncate(file_path().c_str(), 10'000), 0);
  runtime().run(read_near_the_end(runtime().control(), file(), pool()));
}

Task<void> write_to_a_reader(Io& io, const FileHandle& file, BufferPool& pool) {
  Buffer buffer = co_await AcquireBuffer(pool, io);
  const Status written = co_await write_direct(io, file, buffer.whole(), 0);
  EXPECT_EQ(written.code(), ErrorCode::kIoError);
  EXPECT_EQ(written.system_errno(), EBADF);
}

TEST_P(DirectIoTest, AFailedWriteCarriesTheErrno) {
  FileHandle reader(&runtime().environment().files(),
                    ::open(file_path().c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  ASSERT_TRUE(bool(reader));
  runtime().run(write_to_a_reader(runtime().control(), reader, pool()));
}

}  // namespace
}  // namespace fgsync::io::testing
