#include "transfer/space_check.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "io/posix_file_system.h"
#include "support/faulty_file_system.h"
#include "support/temporary_directory.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kPlenty = 1u << 30;

class SpaceCheckTest : public ::testing::Test {
 protected:
  SpaceCheckTest() {
    auto handle = files_.open_path(directory_.path());
    EXPECT_TRUE(handle.ok());
    staging_ = std::make_shared<const io::FileHandle>(std::move(*handle));
    has(10 * kMiB);
  }
  void has(std::uint64_t bytes, std::uint64_t inodes = 100) {
    files_.pretend_space({kPlenty, bytes, 4096, kPlenty, inodes});
  }
  SpaceClaim claim(std::uint64_t bytes, std::optional<std::uint64_t> replaced = std::nullopt) {
    return check_.claim(staging_, bytes, replaced);
  }
  bool fits() {
    const Status judged = check_.judge();
    EXPECT_TRUE(judged.ok() || judged.code() == ErrorCode::kNoSpace) << judged.message();
    return judged.ok();
  }

  const TemporaryDirectory directory_;
  FaultyFileSystem files_{io::make_posix_file_system()};
  storage::DirectoryReference staging_;
  SpaceCheck check_{files_, "/target"};
};

TEST_F(SpaceCheckTest, WhatIsPlannedAndNotWrittenHasToFit) {
  const SpaceClaim first = claim(6 * kMiB);
  EXPECT_TRUE(fits());
  const SpaceClaim second = claim(4 * kMiB + 1);  // a block more than there is
  const Status judged = check_.judge();
  EXPECT_EQ(judged.code(), ErrorCode::kNoSpace);
  EXPECT_EQ(judged.system_errno(), ENOSPC);
  EXPECT_EQ(
      judged.message(),
      "/target: planning: No space left on device: 10489856 bytes needed, 10485760 available");
}

TEST_F(SpaceCheckTest, WhatIsWrittenIsInTheFileSystemsOwnFigures) {
  SpaceClaim first = claim(6 * kMiB);
  EXPECT_TRUE(fits());
  first.written();
  first.written();
  has(4 * kMiB);
  const SpaceClaim second = claim(4 * kMiB);
  EXPECT_TRUE(fits());
  const SpaceClaim third = claim(1);
  EXPECT_FALSE(fits());
}

TEST_F(SpaceCheckTest, WhatIsGivenUpNeedsNothing) {
  for (int i = 0; i < 10; ++i) {
    SpaceClaim given_up = claim(8 * kMiB);
    SpaceClaim moved = std::move(given_up);
    given_up = SpaceClaim();
    EXPECT_TRUE(fits()) << i;
  }
}

TEST_F(SpaceCheckTest, AnOldVersionGivesItsRoomBackToTheOthers) {
  const SpaceClaim first = claim(9 * kMiB, 9 * kMiB);
  EXPECT_TRUE(fits());
  const SpaceClaim second = claim(9 * kMiB, 8 * kMiB);
  EXPECT_TRUE(fits());
}

TEST_F(SpaceCheckTest, ButNotToTheNewOneBesideWhichItStands) {
  const SpaceClaim one = claim(11 * kMiB, 11 * kMiB);
  EXPECT_FALSE(fits());
}

TEST_F(SpaceCheckTest, InodesAreCountedToo) {
  has(kPlenty, 2);
  const SpaceClaim first = claim(0);
  const SpaceClaim second = claim(1, 1);
  const SpaceClaim third = claim(1);
  EXPECT_TRUE(fits());  // two more than now, when the second has given its old one back
  const SpaceClaim fourth = claim(1);
  const Status judged = check_.judge();
  EXPECT_NE(judged.message().find("3 inodes needed, 2 available"), std::string::npos)
      << judged.message();
}

TEST_F(SpaceCheckTest, WithoutAnyInodeNothingCanBeStaged) {
  has(kPlenty, 0);
  const SpaceClaim one = claim(1, 1);
  EXPECT_FALSE(fits());
}

TEST_F(SpaceCheckTest, WhatAFileSystemDoesNotSayIsNotJudged) {
  files_.pretend_space({0, 0, 1, 0, 0});
  const SpaceClaim first = claim(kPlenty);
  EXPECT_TRUE(fits());
  has(0, 0);
  files_.fail(FileOperation::kSpace, 1, EIO);
  const SpaceClaim second = claim(1);
  EXPECT_TRUE(fits());
}

TEST_F(SpaceCheckTest, EachFileSystemHasItsOwnRoom) {
  auto handle = files_.open_path(directory_.path());
  ASSERT_TRUE(handle.ok());
  const auto other = std::make_shared<const io::FileHandle>(std::move(*handle));
  const SpaceClaim first = claim(8 * kMiB);
  const SpaceClaim second = check_.claim(other, 8 * kMiB, std::nullopt);
  EXPECT_TRUE(fits());
}

TEST_F(SpaceCheckTest, NothingPlannedAsksNothing) {
  EXPECT_TRUE(fits());
  EXPECT_EQ(files_.count(FileOperation::kSpace), 0u);
}

}  // namespace
}  // namespace fgsync::transfer
