// --publish=tree: whole sessions that die at every change which they make, and what the next run
// makes of that.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>

#include "support/session_harness.h"
#include "support/temporary_directory.h"
#include "support/tree_listing.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes

using Tree = std::map<std::string, ListedEntry>;

enum class Target { kDirectory, kMissing, kLink };

class TreePublishing : public ::testing::Test {
 protected:
  TreePublishing() {
    directory_.make_directory("source");
    directory_.write("source/small", "new small");
    directory_.write("source/same", "as it was");
    directory_.write("source/large", std::string(200'000, 'x'));
    directory_.make_directory("source/below");
    directory_.write("source/below/.metadata", "names the others");
    directory_.make_symlink("below", "source/latest");
  }

  // A new place with a target in it.
  void begin(Target target) {
    place_ = "place" + std::to_string(++places_);
    directory_.make_directory(place_);
    if (target == Target::kMissing) return;
    const std::string tree = target == Target::kLink ? "/v1~2" : "/target";
    if (target == Target::kLink) directory_.make_symlink("v1~2", place_ + "/target");
    directory_.make_directory(place_ + tree);
    directory_.write(place_ + tree + "/small", "old");
    directory_.write(place_ + tree + "/same", "as it was");
    std::filesystem::last_write_time(
        directory_.path(place_ + tree + "/same"),
        std::filesystem::last_write_time(directory_.path("source/same")));
    directory_.make_directory(place_ + tree + "/own");
    directory_.write(place_ + tree + "/own/file", "own");
    directory_.make_fifo(place_ + tree + "/own/fifo");
  }
  std::string path(const std::string& name) const { return directory_.path(place_ + "/" + name); }
  std::string workshop() const { return place_ + "/.target.fgsync-tree"; }

  // Without the root itself, whose time tells when somebody has locked it.
  Tree list() const {
    Tree tree = list_tree(path("target") + "/.");
    tree.erase(".");
    return tree;
  }
  // What is to come: the source, and what the target has besides.
  Tree wanted(const Tree& old) const {
    Tree tree = list_tree(directory_.path("source"));
    tree.erase(".");
    tree.insert(old.begin(), old.end());
    return tree;
  }
  LocalOutcome run(SessionHarness& harness, bool at_once = true) {
    harness.parameters.publish_tree = at_once;
    return harness.replicate({directory_.path("source")}, path("target"));
  }
  LocalOutcome run(bool at_once = true) {
    SessionHarness harness(IoEngine::kPosix);
    return run(harness, at_once);
  }
  // Names in the place.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path(place_))) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
  void expect_nothing_beside(Target target) {
    EXPECT_EQ(names().size(), target == Target::kLink ? 2u : 1u)
        << ::testing::PrintToString(names());
  }
  static bool has_note(const LocalOutcome& outcome, const std::string& text) {
    return std::ranges::any_of(outcome.receiver.notes, [&](const std::string& note) {
      return note.find(text) != std::string::npos;
    });
  }

  void die_at_each_change(Target target);
  void die_and_recover(Target target, std::uint64_t nth);

  const TemporaryDirectory directory_{"/dev/shm"};  // hundreds of runs, each with its flushes
  std::string place_;
  int places_ = 0;
};

void TreePublishing::die_and_recover(Target target, std::uint64_t nth) {
  begin(target);
  const Tree old = list();
  const Tree after = wanted(old);
  SessionHarness harness(IoEngine::kPosix);
  harness.files().die_at(nth);
  const LocalOutcome outcome = run(harness);
  const Tree left = list();
  EXPECT_TRUE(left == old || left == after) << outcome.text();
  EXPECT_TRUE(!outcome.is_clean() || left == after);
  // The next one may be of the other kind, and may or may not leave that to a third.
  if (nth % 2 == 0) {
    const LocalOutcome next = run(/*at_once=*/false);
    EXPECT_TRUE(next.is_clean()) << next.text();
    EXPECT_EQ(list(), after);
  }
  const LocalOutcome last = run();
  EXPECT_TRUE(last.is_clean()) << last.text();
  EXPECT_EQ(list(), after);
  expect_nothing_beside(target);
}

void TreePublishing::die_at_each_change(Target target) {
  begin(target);
  SessionHarness harness(IoEngine::kPosix);
  ASSERT_TRUE(run(harness).is_clean());
  // A run that fails takes 0.2 s. All those around the switch; of what comes before some.
  constexpr std::uint64_t kAtTheEnd = 15;
  const std::uint64_t changes = harness.files().changes();
  for (std::uint64_t nth = 1; nth <= changes; nth += nth + kAtTheEnd < changes ? 5 : 1) {
    SCOPED_TRACE("change " + std::to_string(nth) + " of " + std::to_string(changes));
    die_and_recover(target, nth);
    if (HasFailure()) return;
  }
}

TEST_F(TreePublishing, ADirectoryIsTheOldTreeOrTheNewOne) {
  die_at_each_change(Target::kDirectory);
}

TEST_F(TreePublishing, AMissingTargetStaysMissingOrIsWhole) {
  die_at_each_change(Target::kMissing);
}

TEST_F(TreePublishing, ASymlinkLeadsToTheOldTreeOrTheNewOne) { die_at_each_change(Target::kLink); }

TEST_F(TreePublishing, WhereNothingCanBeLinkedTheTreeIsCopied) {
  begin(Target::kDirectory);
  const Tree after = wanted(list());
  SessionHarness harness(IoEngine::kPosix);
  harness.files().fail(FileOperation::kLink, 1, EPERM, /*lasting=*/true);
  const LocalOutcome outcome = run(harness);
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_EQ(list(), after);
  EXPECT_TRUE(S_ISFIFO(directory_.lstat(place_ + "/target/own/fifo").st_mode));
}

TEST_F(TreePublishing, AFileSystemThatCannotExchangeIsRefusedBeforeAnythingIsDone) {
  for (const int refusal : {EINVAL, ENOSYS}) {
    begin(Target::kDirectory);
    const Tree old = list();
    SessionHarness harness(IoEngine::kPosix);
    harness.files().fail(FileOperation::kExchange, 1, refusal);
    EXPECT_EQ(run(harness).receiver.status.code(), ErrorCode::kUnsupported);
    EXPECT_EQ(list(), old);
    expect_nothing_beside(Target::kDirectory);
  }
}

TEST_F(TreePublishing, WhatAnEarlierRunHasMadeMakesWayForWhatTheSourceHasNow) {
  directory_.make_directory("source/changing");
  directory_.write("source/changing/file", "of a directory");
  begin(Target::kDirectory);
  const Tree old = list();
  SessionHarness harness(IoEngine::kPosix);
  harness.files().only_about("large");
  harness.files().fail(FileOperation::kRename, 1, EIO);
  EXPECT_FALSE(run(harness).is_clean());
  EXPECT_EQ(list(), old);
  ASSERT_TRUE(directory_.exists(workshop() + "/tree/changing/file"));
  std::filesystem::remove_all(directory_.path("source/changing"));
  directory_.write("source/changing", "a file now");
  const LocalOutcome outcome = run();
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_EQ(list(), wanted(old));
  expect_nothing_beside(Target::kDirectory);
}

// ---- What is left, and a run that publishes file by file

class LeftTree : public TreePublishing {
 protected:
  LeftTree() {
    begin(Target::kDirectory);
    directory_.make_directory(workshop());
    directory_.make_directory(workshop() + "/tree");
    directory_.write(workshop() + "/tree/file", "new");
  }
  void make_older(std::int64_t seconds) {
    const timespec then{::time(nullptr) - seconds, 0};
    const timespec times[] = {then, then};
    ASSERT_EQ(::utimensat(AT_FDCWD, directory_.path(workshop()).c_str(), times, 0), 0);
  }
  static constexpr std::int64_t kDay = 86'400;
};

TEST_F(LeftTree, AYoungOneStaysAndIsNamed) {
  make_older(6 * kDay);
  const LocalOutcome outcome = run(/*at_once=*/false);
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_TRUE(has_note(outcome, "has left its new tree in " + directory_.path(workshop())));
  EXPECT_TRUE(directory_.exists(workshop() + "/tree/file"));
}

TEST_F(LeftTree, AnOldOneIsRemoved) {
  make_older(8 * kDay);
  EXPECT_TRUE(has_note(run(/*at_once=*/false), "removed what an earlier run"));
  EXPECT_FALSE(directory_.exists(workshop()));
}

TEST_F(LeftTree, ALivingRunsIsNotTouched) {
  make_older(8 * kDay);
  const int living = ::open(directory_.path(workshop()).c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(living, LOCK_EX | LOCK_NB), 0);
  const LocalOutcome outcome = run(/*at_once=*/false);
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_TRUE(outcome.receiver.notes.empty());
  EXPECT_TRUE(directory_.exists(workshop() + "/tree/file"));
  ::close(living);
}

TEST_F(LeftTree, WhatCannotBeRemovedIsToldAndFailsNothing) {
  make_older(8 * kDay);
  SessionHarness harness(IoEngine::kPosix);
  harness.files().only_about("file");
  harness.files().fail(FileOperation::kUnlink, 1, EACCES);
  const LocalOutcome outcome = run(harness, /*at_once=*/false);
  EXPECT_TRUE(outcome.is_clean()) << outcome.text();
  EXPECT_TRUE(has_note(outcome, "removing what an earlier run has left"));
}

}  // namespace
}  // namespace fgsync::transfer
