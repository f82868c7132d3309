#include "transfer/outgoing_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "io/posix_file_system.h"
#include "support/faulty_file_system.h"
#include "support/scripted_peer.h"
#include "support/temporary_directory.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes

constexpr std::uint32_t kChunk = 64 * 1024;

class Outgoing : public ::testing::Test {
 protected:
  Outgoing() {
    directory_.make_directory("tree");
    directory_.make_directory("tree/below");
    directory_.write("tree/below/file", contents_of(kBytes, 1));
    Result<io::FileHandle> root = files_->open_path(directory_.path("tree"));
    EXPECT_TRUE(root.ok());
    tree_.display = directory_.path("tree");
    tree_.directories = std::make_unique<storage::DirectoryTree>(*files_, std::move(*root), 4);
    EXPECT_TRUE(tree_.directories->add(3, 0, "below"));
  }
  // As the walk saw it.
  OutgoingFile file() const {
    const struct stat status = directory_.lstat("tree/below/file");
    return OutgoingFile(9, tree_, 3, "file",
                        {std::uint64_t(status.st_size),
                         {status.st_mtim.tv_sec, std::uint32_t(status.st_mtim.tv_nsec)}},
                        kChunk);
  }

  static constexpr std::size_t kBytes = 2 * kChunk + 5;
  const TemporaryDirectory directory_;
  const std::unique_ptr<io::FileSystem> files_ = io::make_posix_file_system();
  SourceTree tree_;
};

TEST_F(Outgoing, ItsDigestIsThatOfItsChunksOnceAllAreSettled) {
  OutgoingFile file = this->file();
  EXPECT_EQ(file.display_path(), directory_.path("tree/below/file"));
  EXPECT_FALSE(file.digest().has_value());
  std::vector<wire::Checksum> checksums;
  for (int i = 0; i < 3; ++i) checksums.push_back(checksum_of_text(std::to_string(i)));
  // In any order.
  EXPECT_FALSE(file.settle_chunk(2 * kChunk, checksums[2]));
  EXPECT_FALSE(file.settle_chunk(0, checksums[0]));
  EXPECT_FALSE(file.digest().has_value());
  EXPECT_TRUE(file.settle_chunk(kChunk, checksums[1]));
  ASSERT_TRUE(file.digest().has_value());
  EXPECT_EQ(*file.digest(), wire::file_digest(checksums));
}

TEST_F(Outgoing, APackedOneHasTheDigestItWasGiven) {
  OutgoingFile file = this->file();
  file.set_digest(checksum_of_text("contents"));
  EXPECT_EQ(*file.digest(), checksum_of_text("contents"));
}

TEST_F(Outgoing, IsOpenedOnceAndStaysOpenUntilItIsChecked) {
  OutgoingFile file = this->file();
  auto first = file.open(*files_, DirectIo::kNever);
  auto second = file.open(*files_, DirectIo::kNever);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->get(), second->get());
  EXPECT_TRUE(file.check_and_close().ok());
  EXPECT_EQ(first->use_count(), 2) << "it holds the file no more";
}

TEST_F(Outgoing, AChangeIsNoticedBeforeAndAfterReading) {
  OutgoingFile before = file();
  directory_.write("tree/below/file", "now shorter");
  EXPECT_EQ(before.open(*files_, DirectIo::kNever).status().code(), ErrorCode::kSourceChanged);
  OutgoingFile after = file();
  ASSERT_TRUE(after.open(*files_, DirectIo::kNever).ok());
  directory_.write("tree/below/file", "another one");
  EXPECT_EQ(after.check_and_close().code(), ErrorCode::kSourceChanged);
  EXPECT_TRUE(after.check_and_close().ok()) << "closed already";
}

TEST_F(Outgoing, ADirectoryThatVanishedIsAChangeOfTheSource) {
  OutgoingFile file = this->file();
  ASSERT_EQ(::unlink(directory_.path("tree/below/file").c_str()), 0);
  ASSERT_EQ(::rmdir(directory_.path("tree/below").c_str()), 0);
  EXPECT_EQ(file.open(*files_, DirectIo::kNever).status().code(), ErrorCode::kSourceChanged);
}

TEST_F(Outgoing, IsWithdrawnOnceByWhoeverIsFirst) {
  OutgoingFile file = this->file();
  EXPECT_FALSE(file.is_withdrawn());
  std::atomic<int> first{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { first += file.withdraw() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(first, 1);
  EXPECT_TRUE(file.is_withdrawn());
}

TEST_F(Outgoing, TheLastOfManyThreadsHearsThatItIsTheLast) {
  OutgoingFile file = this->file();
  std::atomic<int> last{0};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 3; ++i) {
    threads.emplace_back([&file, &last, i] {
      last += file.settle_chunk(i * kChunk, checksum_of_text(std::to_string(i))) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(last, 1);
}

}  // namespace
}  // namespace fgsync::transfer
