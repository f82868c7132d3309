// Digests of files as they are read from the disk, by one lane and by several.
#include "transfer/file_digest.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "io/sync.h"
#include "support/temporary_directory.h"
#include "support/test_runtime.h"

namespace fgsync::transfer {
namespace {

using testing::FileOperation;
using testing::TestRuntime;

constexpr std::uint32_t kChunkBytes = 64 * 1024;

std::string contents_of(std::size_t size) {
  std::string contents(size, '\0');
  for (std::size_t i = 0; i < size; ++i) contents[i] = char((i * 2654435761u) >> 11);
  return contents;
}

// By the definition of the digest, from the contents.
wire::Checksum expected_digest(const std::string& contents) {
  std::vector<wire::Checksum> chunks;
  for (std::size_t at = 0; at == 0 || at < contents.size(); at += kChunkBytes) {
    chunks.push_back(wire::checksum_of(std::as_bytes(std::span(contents).subspan(at).first(
        std::min<std::size_t>(kChunkBytes, contents.size() - at)))));
  }
  return wire::file_digest(chunks);
}

class FileDigestTest : public testing::OnEachEngine {
 protected:
  void SetUp() override {
    OnEachEngine::SetUp();
    runtime_ = TestRuntime::create(GetParam());
    meter_.emplace(runtime_->environment());
    reading_.emplace(*meter_);
  }
  std::unique_ptr<FileDigest> digest_of(const std::string& name) {
    const struct stat status = directory_.lstat(name);
    FilePlace place;
    auto root = runtime_->files().open_path(directory_.path());
    EXPECT_TRUE(root.ok());
    place.directories =
        std::make_shared<storage::DirectoryTree>(runtime_->files(), std::move(*root), 4);
    place.name = name;
    place.identity = {std::uint64_t(status.st_size),
                      {status.st_mtim.tv_sec, std::uint32_t(status.st_mtim.tv_nsec)}};
    return std::make_unique<FileDigest>(runtime_->files(), std::move(place), kChunkBytes);
  }
  // What the lanes say of it: one of them, and once.
  std::vector<Result<wire::Checksum>> read_by(std::size_t lanes, FileDigest& digest,
                                              std::size_t buffer_bytes = 4096) {
    auto pool = BufferPool::create(buffer_bytes, lanes);
    EXPECT_TRUE(pool.ok());
    pool_ = std::move(*pool);
    said_.clear();
    runtime_->run(run_lanes(lanes, &digest));
    return std::move(said_);
  }

  const testing::TemporaryDirectory directory_;
  std::unique_ptr<TestRuntime> runtime_;
  std::optional<transport::StageMeter> meter_;
  std::optional<Reading> reading_;

 private:
  io::Task<void> run_lanes(std::size_t lanes, FileDigest* digest) {
    io::TaskGroup group;
    for (std::size_t i = 0; i < lanes; ++i) {
      io::Io& worker = runtime_->worker(i % runtime_->worker_count());
      group.spawn(worker, run_lane(&worker, digest));
    }
    co_await group.join(runtime_->control());
  }
  io::Task<void> run_lane(io::Io* io, FileDigest* digest) {
    Buffer buffer = co_await io::AcquireBuffer(*pool_, *io);
    auto found = co_await digest->read_share(io, &buffer, &*reading_);
    co_await io::resume_on(runtime_->control());
    if (found) said_.push_back(std::move(*found));
    co_await io::resume_on(*io);
  }
  std::unique_ptr<BufferPool> pool_;
  std::vector<Result<wire::Checksum>> said_;
};

TEST_P(FileDigestTest, LanesTogetherReadWhatIsThere) {
  const std::string contents = contents_of(37 * kChunkBytes + 5);
  directory_.write("large", contents);
  const auto digest = digest_of("large");
  EXPECT_EQ(digest->chunks(), 38u);
  const auto said = read_by(5, *digest);
  ASSERT_EQ(said.size(), 1u);
  ASSERT_TRUE(said[0].ok()) << said[0].status().message();
  EXPECT_EQ(*said[0], expected_digest(contents));
  EXPECT_EQ(meter_->figures(Stage::kRead).bytes, contents.size());
}

TEST_P(FileDigestTest, AFileOfOneChunkHasItsChecksum) {
  const std::string contents = contents_of(kChunkBytes);
  directory_.write("one", contents);
  const auto said = read_by(3, *digest_of("one"), 16 * kChunkBytes);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(*said[0], expected_digest(contents));
}

TEST_P(FileDigestTest, SmallFilesAreReadWhole) {
  std::vector<std::byte> buffer(10'000);
  for (const std::size_t size : {0u, 1u, kChunkBytes, kChunkBytes + 1, 3 * kChunkBytes + 77}) {
    const std::string contents = contents_of(size);
    directory_.write("small", contents);
    const auto read = digest_of("small")->read_whole(buffer);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, expected_digest(contents)) << size;
  }
}

TEST_P(FileDigestTest, WhatIsNotAsItWasSeenIsSaidToHaveChanged) {
  directory_.write("file", contents_of(3 * kChunkBytes));
  const auto before = digest_of("file");
  directory_.write("file", contents_of(3 * kChunkBytes + 1));
  const auto said = read_by(2, *before);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].status().code(), ErrorCode::kSourceChanged);
}

TEST_P(FileDigestTest, AFailedReadIsToldOnce) {
  directory_.write("file", contents_of(20 * kChunkBytes));
  const auto digest = digest_of("file");
  runtime_->files().fail(FileOperation::kOpenFile, 1, EIO, /*lasting=*/true);
  const auto said = read_by(4, *digest);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].status().code(), ErrorCode::kIoError);
}

TEST_P(FileDigestTest, AStopEndsItWithoutADigest) {
  directory_.write("file", contents_of(20 * kChunkBytes));
  reading_->stop = true;
  EXPECT_TRUE(read_by(2, *digest_of("file")).empty());
  EXPECT_EQ(meter_->figures(Stage::kRead).bytes, 0u);
}

TEST_P(FileDigestTest, PagesOfTheCacheMakeWay) {
  directory_.write("small", "x");
  std::vector<std::byte> buffer(10);
  ASSERT_TRUE(digest_of("small")->read_whole(buffer).ok());
  EXPECT_EQ(runtime_->files().count(FileOperation::kDropCached), 1u);
}

FGSYNC_TEST_ON_EACH_ENGINE(FileDigestTest);

}  // namespace
}  // namespace fgsync::transfer
