// Digests of many files, read several at a time.
#include "transfer/digest_lanes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "support/temporary_directory.h"
#include "support/test_runtime.h"

namespace fgsync::transfer {
namespace {

using testing::FileOperation;
using testing::TestRuntime;

constexpr std::uint32_t kChunkBytes = 64 * 1024;

class DigestLanesTest : public testing::OnEachEngine {
 protected:
  void SetUp() override {
    OnEachEngine::SetUp();
    runtime_ = TestRuntime::create(GetParam());
    meter_.emplace(runtime_->environment());
    auto root = runtime_->files().open_path(directory_.path());
    ASSERT_TRUE(root.ok());
    tree_ = std::make_shared<storage::DirectoryTree>(runtime_->files(), std::move(*root), 4);
  }

  DigestRequest request_of(const std::string& name) {
    const struct stat status = directory_.lstat(name);
    FilePlace place;
    place.directories = tree_;
    place.name = name;
    place.identity = {std::uint64_t(status.st_size),
                      {status.st_mtim.tv_sec, std::uint32_t(status.st_mtim.tv_nsec)}};
    return {std::move(place), kChunkBytes, [this, name](const Result<wire::Checksum>& digest) {
              EXPECT_TRUE(said_.emplace(name, digest).second) << name << " twice";
            }};
  }

  // By the definition of the digest, from the contents.
  static wire::Checksum expected_digest(const std::string& contents) {
    std::vector<wire::Checksum> chunks;
    for (std::size_t at = 0; at == 0 || at < contents.size(); at += kChunkBytes) {
      chunks.push_back(wire::checksum_of(std::as_bytes(std::span(contents).subspan(at).first(
          std::min<std::size_t>(kChunkBytes, contents.size() - at)))));
    }
    return wire::file_digest(chunks);
  }

  void read(std::vector<std::string> names, bool stopped = false) {
    runtime_->run(read_with_lanes(std::move(names), stopped));
  }

  const testing::TemporaryDirectory directory_;
  std::unique_ptr<TestRuntime> runtime_;
  std::optional<transport::StageMeter> meter_;
  std::map<std::string, Result<wire::Checksum>> said_;

 private:
  io::Task<void> read_with_lanes(std::vector<std::string> names, bool stopped) {
    DigestLanes lanes(*runtime_, runtime_->environment().files(), *meter_, 3);
    EXPECT_TRUE(lanes.start().ok());
    if (stopped) lanes.stop();
    std::vector<DigestRequest> requests;
    for (const std::string& name : names) requests.push_back(request_of(name));
    lanes.add(std::move(requests));
    lanes.close();
    co_await lanes.join();
  }
  std::shared_ptr<storage::DirectoryTree> tree_;
};

TEST_P(DigestLanesTest, SmallAndLargeFilesAreReadAndEachIsSettledOnce) {
  std::map<std::string, std::string> contents;
  std::vector<std::string> names;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < 150; ++i) {
    const std::size_t size = i % 50 == 7 ? 700'000 + i : i * 400;
    const std::string name = "f" + std::to_string(i);
    contents[name] = std::string(size, char('a' + i % 26));
    directory_.write(name, contents[name]);
    names.push_back(name);
    bytes += size;
  }
  read(names);
  ASSERT_EQ(said_.size(), contents.size());
  for (const auto& [name, digest] : said_) {
    ASSERT_TRUE(digest.ok()) << name << ": " << digest.status().message();
    EXPECT_EQ(*digest, expected_digest(contents[name])) << name;
  }
  EXPECT_EQ(meter_->figures(Stage::kRead).bytes, bytes);
}

TEST_P(DigestLanesTest, OneThatCannotBeReadLeavesTheOthersAlone) {
  directory_.write("a", "a");
  directory_.write("b", "b");
  runtime_->files().fail(FileOperation::kOpenFile, 1, EIO);
  read({"a", "b"});
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_EQ(said_.at("a").status().code(), ErrorCode::kIoError);
  EXPECT_TRUE(said_.at("b").ok());
}

TEST_P(DigestLanesTest, AStopEndsThem) {
  directory_.write("small", "x");
  directory_.write("large", std::string(700'000, 'x'));
  read({"small", "large"}, /*stopped=*/true);
  EXPECT_TRUE(said_.empty());
  EXPECT_EQ(meter_->figures(Stage::kRead).bytes, 0u);
}

FGSYNC_TEST_ON_EACH_ENGINE(DigestLanesTest);

}  // namespace
}  // namespace fgsync::transfer
