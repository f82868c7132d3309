// The lock on a target, and its races with the end of the run before: on real files.
#include "storage/state_directory.h"

#include <cerrno>

#include "storage/storage_fixture.h"
#include "support/faulty_file_system.h"

namespace fgsync::storage {
namespace {

using testing::FaultyFileSystem;
using testing::FileOperation;
using testing::RecordedOperation;

class StateLockTest : public testing::StorageFixture {
 protected:
  bool take(StateLock& lock) {
    Result<bool> taken = lock.try_take(*files, root);
    EXPECT_TRUE(taken.ok()) << taken.status().message();
    return taken.ok() && *taken;
  }
};

TEST_F(StateLockTest, IsHeldByOneUntilItIsReleased) {
  StateLock first;
  StateLock second;
  EXPECT_TRUE(take(first));
  EXPECT_TRUE(first.is_held());
  EXPECT_EQ(directory.lstat(".fgsync").st_mode, S_IFDIR | 0700u);
  EXPECT_FALSE(take(second));
  EXPECT_FALSE(second.is_held());
  first.release();
  EXPECT_TRUE(take(second));
}

TEST_F(StateLockTest, TheDirectoryGoesUnlessSomethingIsInIt) {
  StateLock lock;
  EXPECT_TRUE(take(lock));
  directory.write(".fgsync/kept", "");
  EXPECT_TRUE(remove_state_directory(*files, root).ok());
  EXPECT_TRUE(directory.exists(".fgsync/kept"));
  ::unlink(directory.path(".fgsync/kept").c_str());
  EXPECT_TRUE(remove_state_directory(*files, root).ok());
  EXPECT_FALSE(directory.exists(".fgsync"));
  EXPECT_TRUE(remove_state_directory(*files, root).ok());
}

TEST_F(StateLockTest, ADirectoryThatIsOpenToOthersIsClosed) {
  directory.make_directory(".fgsync");
  StateLock lock;
  EXPECT_TRUE(take(lock));
  EXPECT_EQ(directory.lstat(".fgsync").st_mode, S_IFDIR | 0700u);
}

// The run before ends between two calls of this one.
TEST_F(StateLockTest, ADirectoryThatIsRemovedMeanwhileIsNotTakenForLocked) {
  for (const FileOperation moment : {FileOperation::kOpenDirectory, FileOperation::kTryLock}) {
    FaultyFileSystem faulty(io::make_posix_file_system());
    auto held_root = faulty.open_path(directory.path());
    ASSERT_TRUE(held_root.ok());
    int times = 0;
    faulty.on_operation([&](const RecordedOperation& operation) {
      if (operation.operation != moment || ++times > 1) return;
      EXPECT_EQ(::rmdir(directory.path(".fgsync").c_str()), 0);
    });
    StateLock lock;
    Result<bool> taken = lock.try_take(faulty, *held_root);
    EXPECT_TRUE(taken.ok() && *taken);
    StateLock other;
    EXPECT_FALSE(take(other));  // what is locked is what others find
    EXPECT_TRUE(remove_state_directory(*files, root).ok());
  }
}

TEST_F(StateLockTest, OfADirectoryThatIsNotThereNobodyHoldsIt) {
  StateLock lock;
  EXPECT_EQ(lock.try_take_present(*files, root).status().code(), ErrorCode::kNotFound);
  EXPECT_FALSE(directory.exists(".fgsync"));
  StateLock first;
  EXPECT_TRUE(take(first));
  Result<bool> taken = lock.try_take_present(*files, root);
  EXPECT_TRUE(taken.ok() && !*taken);
  first.release();
  taken = lock.try_take_present(*files, root);
  EXPECT_TRUE(taken.ok() && *taken);
  EXPECT_TRUE(lock.is_held());
}

TEST_F(StateLockTest, WhatStandsInTheWayIsAnError) {
  directory.write(".fgsync", "");
  StateLock lock;
  EXPECT_FALSE(lock.try_take(*files, root).ok());
}

}  // namespace
}  // namespace fgsync::storage
