// Sessions on a file system that fails: the Nth operation of every kind, one at a time, until a run
// is not touched any more. A run may fail, whole or for single files, but it never says that all is
// well while it is not, no name at the target ever stands for half a file, and the next run, on a
// sound disk, brings everything in order.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

#include "support/session_harness.h"
#include "support/temporary_directory.h"
#include "support/tree_listing.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes

class SessionFaults : public ::testing::TestWithParam<FileOperation> {
 protected:
  SessionFaults() {
    directory_.make_directory("source");
    directory_.write("source/small", contents_of(3000, 1));
    directory_.write("source/large", contents_of(200'000, 2));
    directory_.make_directory("source/below");
    directory_.write("source/below/small", contents_of(100, 3));
    directory_.write("source/.metadata", "names the others");
    directory_.make_symlink("small", "source/link");
    source_ = list_tree(directory_.path("source"));
  }

  // A target with an older version of everything, as in most runs.
  void make_target() {
    directory_.make_directory(target());
    directory_.write(target() + "/small", "old small");
    directory_.write(target() + "/large", "old large");
    directory_.make_symlink("elsewhere", target() + "/link");
    old_ = list_files(directory_.path(target()));
  }
  std::string target() const { return "target" + std::to_string(runs_); }

  // Without what a failing disk did not let the run remove: it stands in the root and nowhere else.
  std::map<std::string, ListedEntry> list_target() const {
    auto found = list_tree(directory_.path(target()));
    std::erase_if(found, [](const auto& entry) { return entry.first.starts_with(".fgsync"); });
    return found;
  }

  // Every file is the old one or the new one, whole; the symlink as well.
  void expect_nothing_torn(const std::map<std::string, ListedEntry>& found) {
    for (const auto& [path, entry] : found) {
      if (entry.type == 'f') {
        const bool is_old = old_.contains(path) && old_.at(path) == entry.contents;
        EXPECT_TRUE(is_old || source_.at(path).contents == entry.contents) << path;
      }
      if (entry.type == 'l') {
        EXPECT_TRUE(entry.contents == "elsewhere" || entry.contents == "small") << entry.contents;
      }
    }
    for (const char* name : {"small", "large", "link"}) EXPECT_TRUE(found.contains(name)) << name;
    if (!found.contains(".metadata")) return;
    for (const char* file : {"small", "large", "below/small"}) {
      EXPECT_EQ(found.at(file).contents, source_.at(file).contents) << "a marker before " << file;
    }
  }

  // What befalls the Nth operation.
  using Fault = std::function<void(FaultyFileSystem& files, std::uint64_t nth)>;

  // True if the fault was met.
  bool run_with_fault(const Fault& fault, std::uint64_t nth) {
    ++runs_;
    make_target();
    SessionHarness harness(IoEngine::kPosix);
    fault(harness.files(), nth);
    const LocalOutcome outcome =
        harness.replicate({directory_.path("source")}, directory_.path(target()));
    const auto found = list_target();
    expect_nothing_torn(found);
    if (outcome.is_clean()) {
      EXPECT_EQ(found, source_) << "it says that all is well: " << outcome.text();
    }
    const bool met = harness.files().failures() > 0;
    if (!met || is_harmless_) {
      EXPECT_TRUE(outcome.is_clean()) << outcome.text();
    }
    if (met) expect_recovery();
    return met;
  }

  void expect_recovery() {
    SessionHarness harness(IoEngine::kPosix);
    const LocalOutcome outcome =
        harness.replicate({directory_.path("source")}, directory_.path(target()));
    EXPECT_TRUE(outcome.is_clean()) << outcome.text();
    EXPECT_EQ(list_target(), source_);
  }

  void strike_each_in_turn(const Fault& fault) {
    constexpr std::uint64_t kManyMore = 200;  // than any run of this tree has
    for (std::uint64_t nth = 1;; ++nth) {
      SCOPED_TRACE("operation " + std::to_string(nth));
      if (!run_with_fault(fault, nth)) break;
      ASSERT_LT(nth, kManyMore);
    }
  }
  void fail_each_in_turn(int system_errno, bool lasting) {
    SCOPED_TRACE("errno " + std::to_string(system_errno));
    strike_each_in_turn([&](FaultyFileSystem& files, std::uint64_t nth) {
      files.fail(GetParam(), nth, system_errno, lasting);
    });
  }

  const TemporaryDirectory directory_;
  std::map<std::string, ListedEntry> source_;
  std::map<std::string, std::string> old_;
  bool is_harmless_ = false;  // no fault is to be noticed
  int runs_ = 0;
};

constexpr std::pair<FileOperation, const char*> kOperations[] = {
    {FileOperation::kOpenPath, "OpenPath"},
    {FileOperation::kStatPath, "StatPath"},
    {FileOperation::kOpenDirectory, "OpenDirectory"},
    {FileOperation::kOpenFile, "OpenFile"},
    {FileOperation::kList, "List"},
    {FileOperation::kStat, "Stat"},
    {FileOperation::kStatAt, "StatAt"},
    {FileOperation::kReadLink, "ReadLink"},
    {FileOperation::kRead, "Read"},
    {FileOperation::kWrite, "Write"},
    {FileOperation::kTruncate, "Truncate"},
    {FileOperation::kAllocate, "Allocate"},
    {FileOperation::kSync, "Sync"},
    {FileOperation::kSyncFileSystem, "SyncFileSystem"},
    {FileOperation::kMakeDirectory, "MakeDirectory"},
    {FileOperation::kMakeSymlink, "MakeSymlink"},
    {FileOperation::kRename, "Rename"},
    {FileOperation::kUnlink, "Unlink"},
    {FileOperation::kRemoveDirectory, "RemoveDirectory"},
    {FileOperation::kSetMode, "SetMode"},
    {FileOperation::kSetOwner, "SetOwner"},
    {FileOperation::kSetMtime, "SetMtime"},
    {FileOperation::kTryLock, "TryLock"},
    {FileOperation::kSpace, "Space"},
};

std::vector<FileOperation> all_operations() {
  std::vector<FileOperation> operations;
  for (const auto& [operation, name] : kOperations) operations.push_back(operation);
  return operations;
}

std::string name_of(const ::testing::TestParamInfo<FileOperation>& instance) {
  for (const auto& [operation, name] : kOperations) {
    if (operation == instance.param) return name;
  }
  return "Unknown";
}

INSTANTIATE_TEST_SUITE_P(OfEachKind, SessionFaults, ::testing::ValuesIn(all_operations()), name_of);

TEST_P(SessionFaults, AFaultThatHappensOnceIsNeverASilentDifference) {
  fail_each_in_turn(EIO, /*lasting=*/false);
}

TEST_P(SessionFaults, AFaultThatStaysIsNeverASilentDifference) {
  fail_each_in_turn(EACCES, /*lasting=*/true);
}

TEST_P(SessionFaults, AFullDiskIsNeverASilentDifference) {
  fail_each_in_turn(ENOSPC, /*lasting=*/true);
}

// What a disk has to do with itself, with every error that it has.
class DiskFaults : public SessionFaults {};

INSTANTIATE_TEST_SUITE_P(OfEachKind, DiskFaults,
                         ::testing::Values(FileOperation::kOpenFile, FileOperation::kWrite,
                                           FileOperation::kAllocate, FileOperation::kSync,
                                           FileOperation::kSyncFileSystem,
                                           FileOperation::kMakeDirectory,
                                           FileOperation::kMakeSymlink, FileOperation::kRename),
                         name_of);

TEST_P(DiskFaults, OneThatFillsUpForAMomentIsNeverASilentDifference) {
  fail_each_in_turn(ENOSPC, /*lasting=*/false);
}

TEST_P(DiskFaults, AQuotaIsNeverASilentDifference) {
  fail_each_in_turn(EDQUOT, /*lasting=*/false);
  fail_each_in_turn(EDQUOT, /*lasting=*/true);
}

TEST_P(DiskFaults, OneThatDiesIsNeverASilentDifference) {
  fail_each_in_turn(EIO, /*lasting=*/true);
}

class ShortWrites : public SessionFaults {};

INSTANTIATE_TEST_SUITE_P(OfEachKind, ShortWrites, ::testing::Values(FileOperation::kWrite),
                         name_of);

TEST_P(ShortWrites, AreGoneOnWith) {
  is_harmless_ = true;
  for (const bool lasting : {false, true}) {
    strike_each_in_turn(
        [&](FaultyFileSystem& files, std::uint64_t nth) { files.shorten_writes(nth, lasting); });
  }
}

// As a disk does that is full in the middle of a write.
TEST_P(ShortWrites, BeforeAFullDiskAreNeverASilentDifference) {
  for (const bool lasting : {false, true}) {
    strike_each_in_turn([&](FaultyFileSystem& files, std::uint64_t nth) {
      files.shorten_writes(nth);
      files.fail(FileOperation::kWrite, nth + 1, ENOSPC, lasting);
    });
  }
}

}  // namespace
}  // namespace fgsync::transfer
