#include "storage/staging_area.h"

#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "storage/staged_file.h"
#include "storage/storage_fixture.h"
#include "support/faulty_file_system.h"

namespace fgsync::storage {
namespace {

constexpr std::uint64_t kMount = 1;

class StagingAreaTest : public testing::StorageFixture {
 protected:
  DirectoryReference reference() { return std::make_shared<const io::FileHandle>(open_root()); }
  DirectoryReference stage(StagingArea& area) {
    auto staging = area.on_mount(kMount, reference());
    EXPECT_TRUE(staging.ok()) << staging.status().message();
    return staging.ok() ? *staging : nullptr;
  }
  std::unique_ptr<StagedFile> create(StagingArea& area) {
    auto file = StagedFile::create(*files, stage(area), area.next_name(), 1, DirectIo::kNever);
    EXPECT_TRUE(file.ok()) << file.status().message();
    return file.ok() ? std::move(*file) : nullptr;
  }
};

// Another process with a staged file of its own. It reports when the file is there; then it waits
// to be told to die, which it does without cleaning up.
class OtherRun {
 public:
  OtherRun(const std::string& target, const std::string& session) {
    EXPECT_EQ(::pipe2(ready_.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(order_.data(), O_CLOEXEC), 0);
    child_ = ::fork();
    if (child_ == 0) ::_exit(run(target, session));
    char byte = 0;
    EXPECT_EQ(::read(ready_[0], &byte, 1), 1);
    EXPECT_EQ(byte, 'y');
  }
  ~OtherRun() {
    if (child_ > 0) die();
    for (const int fd : {ready_[0], ready_[1], order_[0], order_[1]}) ::close(fd);
  }
  OtherRun(const OtherRun&) = delete;
  OtherRun& operator=(const OtherRun&) = delete;

  void die() {
    EXPECT_EQ(::write(order_[1], "d", 1), 1);
    int status = 0;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    child_ = -1;
  }

 private:
  int run(const std::string& target, const std::string& session) {
    const auto files = io::make_posix_file_system();
    auto root = files->open_path(target);
    if (!root.ok()) return 1;
    StagingArea area(*files, session);
    auto staging = area.on_mount(kMount, std::make_shared<const io::FileHandle>(std::move(*root)));
    if (!staging.ok()) return 2;
    auto file = StagedFile::create(*files, *staging, area.next_name(), 100'000, DirectIo::kNever);
    if (!file.ok()) return 3;
    char byte = 'y';
    if (::write(ready_[1], &byte, 1) != 1 || ::read(order_[0], &byte, 1) != 1) return 4;
    ::_exit(0);
  }

  std::array<int, 2> ready_{};
  std::array<int, 2> order_{};
  pid_t child_ = -1;
};

TEST_F(StagingAreaTest, NothingIsMadeBeforeTheFirstUse) {
  StagingArea area(*files, "session");
  EXPECT_FALSE(directory.exists(".fgsync"));
  EXPECT_TRUE(area.clean().ok());
}

TEST_F(StagingAreaTest, DirectoriesArePrivateAndGoneAfterCleaning) {
  StagingArea area(*files, "session");
  stage(area);
  EXPECT_EQ(directory.lstat(".fgsync").st_mode, S_IFDIR | 0700u);
  EXPECT_EQ(directory.lstat(".fgsync/staging-session").st_mode, S_IFDIR | 0700u);
  EXPECT_TRUE(area.clean().ok());
  EXPECT_FALSE(directory.exists(".fgsync"));
}

TEST_F(StagingAreaTest, LookingForLeftoversMakesNothingWhereThereAreNone) {
  StagingArea area(*files, "session");
  area.look_for_leftovers(kMount, reference());
  EXPECT_FALSE(directory.exists(".fgsync"));
  directory.make_directory(".fgsync");
  directory.write(".fgsync/receipt", "");
  area.look_for_leftovers(kMount, reference());
  EXPECT_FALSE(directory.exists(".fgsync/staging-session"));
}

TEST_F(StagingAreaTest, LeftoversAreFoundAlsoWhereNothingIsStaged) {
  OtherRun(directory.path(), "dead").die();
  StagingArea area(*files, "session");
  area.look_for_leftovers(kMount, reference());
  EXPECT_EQ(area.removed_leftovers(), 1u);
  EXPECT_TRUE(area.clean().ok());
  EXPECT_FALSE(directory.exists(".fgsync"));
}

TEST_F(StagingAreaTest, OneDirectoryServesAMount) {
  StagingArea area(*files, "session");
  const DirectoryReference first = stage(area);
  EXPECT_EQ(first, stage(area));
  EXPECT_TRUE(area.clean().ok());
}

TEST_F(StagingAreaTest, EachMountHasItsOwnDirectory) {
  directory.make_directory("other");
  StagingArea area(*files, "session");
  stage(area);
  const auto other = std::make_shared<const io::FileHandle>(open_path(directory.path("other")));
  ASSERT_TRUE(area.on_mount(kMount + 1, other).ok());
  EXPECT_TRUE(directory.exists("other/.fgsync/staging-session"));
  EXPECT_TRUE(area.clean().ok());
  EXPECT_FALSE(directory.exists(".fgsync"));
  EXPECT_FALSE(directory.exists("other/.fgsync"));
}

TEST_F(StagingAreaTest, ExistingStateDirectoryIsMadePrivate) {
  directory.make_directory(".fgsync");
  ASSERT_EQ(::chmod(directory.path(".fgsync").c_str(), 0777), 0);
  StagingArea area(*files, "session");
  stage(area);
  EXPECT_EQ(directory.lstat(".fgsync").st_mode & 07777u, 0700u);
  EXPECT_TRUE(area.clean().ok());
}

TEST_F(StagingAreaTest, StateNameThatIsAFileIsAnError) {
  directory.write(".fgsync", "somebody's");
  StagingArea area(*files, "session");
  auto staging = area.on_mount(kMount, reference());
  ASSERT_FALSE(staging.ok());
  EXPECT_EQ(staging.status().system_errno(), ENOTDIR);
  EXPECT_EQ(directory.read(".fgsync"), "somebody's");
}

TEST_F(StagingAreaTest, StateNameThatIsASymlinkIsAnErrorAndNotFollowed) {
  directory.make_directory("victim");
  directory.make_directory("victim/staging-dead");
  directory.write("victim/staging-dead/file", "");
  directory.make_symlink("victim", ".fgsync");
  StagingArea area(*files, "session");
  EXPECT_FALSE(area.on_mount(kMount, reference()).ok());
  EXPECT_TRUE(area.clean().ok());
  EXPECT_TRUE(directory.exists("victim/staging-dead/file"));
  EXPECT_FALSE(directory.exists("victim/staging-session"));
}

TEST_F(StagingAreaTest, TargetWithoutWritePermissionIsPermissionDenied) {
  const testing::UnprivilegedScope unprivileged;
  ASSERT_TRUE(::geteuid() != directory.lstat("").st_uid ||
              ::chmod(directory.path().c_str(), 0500) == 0);
  StagingArea area(*files, "session");
  EXPECT_EQ(area.on_mount(kMount, reference()).status().code(), ErrorCode::kPermissionDenied);
}

TEST_F(StagingAreaTest, NamesAreNotUsedTwice) {
  StagingArea area(*files, "session");
  const std::string first = area.next_name();
  EXPECT_NE(first, area.next_name());
}

TEST_F(StagingAreaTest, CleaningRemovesWhatWasNotPublished) {
  StagingArea area(*files, "session");
  const auto published = create(area);
  ASSERT_NE(published, nullptr);
  ASSERT_TRUE(published->publish(root, "name").ok());
  const auto forgotten = create(area);
  ASSERT_NE(forgotten, nullptr);
  EXPECT_TRUE(area.clean().ok());
  EXPECT_FALSE(directory.exists(".fgsync"));
  EXPECT_TRUE(directory.exists("name"));
}

TEST_F(StagingAreaTest, CleaningKeepsOtherStateAndItsDirectory) {
  StagingArea area(*files, "session");
  stage(area);
  directory.write(".fgsync/receipt", "kept");
  EXPECT_TRUE(area.clean().ok());
  EXPECT_EQ(directory.read(".fgsync/receipt"), "kept");
  EXPECT_FALSE(directory.exists(".fgsync/staging-session"));
}

TEST_F(StagingAreaTest, LeftoverOfADeadRunIsRemovedAndALiveRunsStays) {
  OtherRun dead(directory.path(), "dead");
  OtherRun live(directory.path(), "live");
  dead.die();
  ASSERT_TRUE(directory.exists(".fgsync/staging-dead/0"));
  StagingArea area(*files, "session");
  stage(area);
  EXPECT_FALSE(directory.exists(".fgsync/staging-dead"));
  EXPECT_TRUE(directory.exists(".fgsync/staging-live/0"));
  EXPECT_EQ(area.removed_leftovers(), 1u);
  EXPECT_TRUE(area.clean().ok());
  EXPECT_TRUE(directory.exists(".fgsync/staging-live/0"));
}

TEST_F(StagingAreaTest, LeftoverWithTheSameSessionNameIsNoObstacle) {
  OtherRun dead(directory.path(), "session");
  dead.die();
  StagingArea area(*files, "session");
  EXPECT_NE(create(area), nullptr);
  EXPECT_EQ(area.removed_leftovers(), 1u);
  EXPECT_TRUE(area.clean().ok());
  EXPECT_FALSE(directory.exists(".fgsync"));
}

// Nobody can tell there whether a run is dead.
TEST_F(StagingAreaTest, WhereEveryLockIsGrantedNoLeftoverIsRemoved) {
  OtherRun dead(directory.path(), "dead");
  OtherRun live(directory.path(), "live");
  dead.die();
  testing::FaultyFileSystem lockless(io::make_posix_file_system());
  lockless.grant_every_lock();
  StagingArea area(lockless, "session");
  ASSERT_TRUE(area.on_mount(kMount, reference()).ok());
  EXPECT_EQ(area.removed_leftovers(), 0u);
  EXPECT_TRUE(area.clean().ok());
  EXPECT_FALSE(directory.exists(".fgsync/staging-session"));
  EXPECT_TRUE(directory.exists(".fgsync/staging-dead/0"));
  EXPECT_TRUE(directory.exists(".fgsync/staging-live/0"));
}

TEST_F(StagingAreaTest, WhereLockingFailsNoLeftoverIsRemoved) {
  OtherRun dead(directory.path(), "dead");
  dead.die();
  for (const std::uint64_t nth : {2u, 3u}) {  // our own once more; the leftover's
    testing::FaultyFileSystem failing(io::make_posix_file_system());
    failing.fail(testing::FileOperation::kTryLock, nth, EIO, /*lasting=*/true);
    StagingArea area(failing, "session");
    ASSERT_TRUE(area.on_mount(kMount, reference()).ok());
    EXPECT_EQ(failing.failures(), 1u);
    EXPECT_EQ(area.removed_leftovers(), 0u);
    EXPECT_TRUE(area.clean().ok());
    EXPECT_TRUE(directory.exists(".fgsync/staging-dead/0"));
  }
}

TEST_F(StagingAreaTest, WhatOnlyLooksLikeALeftoverStays) {
  directory.make_directory("victim");
  directory.write("victim/file", "");
  directory.make_directory(".fgsync");
  directory.make_symlink("../victim", ".fgsync/staging-link");
  directory.write(".fgsync/staging-file", "");
  directory.make_directory(".fgsync/other");
  directory.make_directory(".fgsync/staging-full");
  directory.make_directory(".fgsync/staging-full/directory");
  directory.write(".fgsync/staging-full/directory/file", "");
  StagingArea area(*files, "session");
  stage(area);
  EXPECT_EQ(area.removed_leftovers(), 0u);
  EXPECT_TRUE(area.clean().ok());
  for (const char* path : {"victim/file", ".fgsync/staging-link", ".fgsync/staging-file",
                           ".fgsync/other", ".fgsync/staging-full/directory"}) {
    EXPECT_TRUE(directory.exists(path)) << path;
  }
}

TEST_F(StagingAreaTest, StateDirectorySwappedForASymlinkLeadsNoRemovalElsewhere) {
  directory.make_directory("victim");
  directory.make_directory("victim/staging-session");
  directory.write("victim/staging-session/0", "precious");
  StagingArea area(*files, "session");
  const auto file = create(area);
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(::rename(directory.path(".fgsync").c_str(), directory.path("moved").c_str()), 0);
  directory.make_symlink("victim", ".fgsync");
  // The state directory's own name can't be removed, and the symlink is not what is removed in its
  // place.
  EXPECT_EQ(area.clean().system_errno(), ENOTDIR);
  EXPECT_EQ(directory.read("victim/staging-session/0"), "precious");
  EXPECT_TRUE(directory.exists(".fgsync"));
  EXPECT_FALSE(directory.exists("moved/staging-session"));
}

TEST_F(StagingAreaTest, RunsThatStartAndEndAtTheSameMomentDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  std::atomic<int> published{0};
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 100; ++round) {
        const std::string name = std::to_string(thread) + "-" + std::to_string(round);
        StagingArea area(*files, name);
        const auto file = create(area);
        if (file != nullptr && file->publish(root, name).ok() && area.clean().ok()) ++published;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(published, 400);
  EXPECT_FALSE(directory.exists(".fgsync"));
}

}  // namespace
}  // namespace fgsync::storage
