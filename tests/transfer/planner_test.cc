// What the receiver decides about each entry, on real files. Expected values come from stat(2).
#include "transfer/planner.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include "support/idle_session.h"
#include "support/scripted_peer.h"
#include "support/temporary_directory.h"
#include "support/tree_listing.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes
using wire::PlanAction;

class PlannerTest : public ::testing::Test {
 protected:
  PlannerTest() {
    directory_.make_directory("target");
    directory_.make_directory("outside");
    directory_.write("outside/kept", "kept");
    target_.root = directory_.path("target");
    target_.accept.replica_of_contents = true;
  }

  // After the session's parameters and the target are as the test wants them.
  void start() {
    Result<io::FileHandle> root = session().files().open_path(directory_.path("target"));
    ASSERT_TRUE(root.ok());
    directories_ =
        std::make_unique<storage::DirectoryTree>(session().files(), std::move(*root), 12);
    staging_ = std::make_unique<storage::StagingArea>(session().files(), "test");
    journal_ = std::make_unique<ChunkJournal>(session(), wire::Checksum(), target_.root);
    receipt_ = std::make_unique<receipt::ReceiptWriter>(session().environment(), *directories_,
                                                        true, [](const std::string&) {});
    committer_ = std::make_unique<Committer>(session(), *directories_, *receipt_, target_.root);
    planner_ = std::make_unique<Planner>(session(), *directories_, *staging_, incoming_, *journal_,
                                         *committer_, *receipt_, target_, nullptr);
  }
  std::vector<PlanAction> plan(std::initializer_list<wire::ManifestEntry> entries) {
    if (!planner_) start();
    planner_->may_change();
    wire::ManifestBatch batch = batch_of(entries);
    wire::PlanBatch plan;
    const Result<std::size_t> planned = planner_->plan(batch.entries, plan);
    EXPECT_TRUE(planned.ok()) << planned.status().message();
    EXPECT_EQ(*planned, batch.entries.size());
    std::vector<PlanAction> actions;
    for (const wire::PlanDecision& decision : plan.decisions) actions.push_back(decision.action);
    return actions;
  }
  ErrorCode refusal(std::initializer_list<wire::ManifestEntry> entries) {
    if (!planner_) start();
    planner_->may_change();
    wire::ManifestBatch batch = batch_of(entries);
    wire::PlanBatch plan;
    return planner_->plan(batch.entries, plan).status().code();
  }
  // As a sender would announce what stands in the target.
  wire::ManifestEntry announced(std::uint64_t id, const std::string& name) {
    const struct stat status = directory_.lstat("target/" + name);
    wire::ManifestEntry entry = file_entry(id, 0, name, std::uint64_t(status.st_size));
    entry.mode = status.st_mode & 07777u;
    entry.uid = status.st_uid;
    entry.gid = status.st_gid;
    entry.mtime_seconds = status.st_mtim.tv_sec;
    entry.mtime_nanoseconds = std::uint32_t(status.st_mtim.tv_nsec);
    return entry;
  }
  Session& session() { return *idle_.session; }
  std::vector<ErrorEntry> errors() { return session().errors().errors(); }

  const TemporaryDirectory directory_;
  IdleSession idle_;
  ResolvedTarget target_;
  IncomingTable incoming_;
  std::unique_ptr<storage::DirectoryTree> directories_;
  std::unique_ptr<storage::StagingArea> staging_;
  std::unique_ptr<ChunkJournal> journal_;
  std::unique_ptr<receipt::ReceiptWriter> receipt_;
  std::unique_ptr<Committer> committer_;
  std::unique_ptr<Planner> planner_;
};

TEST_F(PlannerTest, AFileIsUnchangedOnlyIfSizeAndMtimeAgreeToTheNanosecond) {
  for (const char* name : {"same", "longer", "later", "nanosecond"}) {
    directory_.write(std::string("target/") + name, "contents");
  }
  wire::ManifestEntry longer = announced(2, "longer");
  ++longer.size;
  wire::ManifestEntry later = announced(3, "later");
  ++later.mtime_seconds;
  wire::ManifestEntry nanosecond = announced(4, "nanosecond");
  nanosecond.mtime_nanoseconds = (nanosecond.mtime_nanoseconds + 1) % 1'000'000'000;
  EXPECT_EQ(plan({announced(1, "same"), longer, later, nanosecond, file_entry(5, 0, "new", 0)}),
            (std::vector<PlanAction>{PlanAction::kUnchanged, PlanAction::kSend, PlanAction::kSend,
                                     PlanAction::kSend, PlanAction::kSend}));
  EXPECT_EQ(planner_->files(), 5u);
  EXPECT_EQ(planner_->files_unchanged(), 1u);
  EXPECT_EQ(planner_->bytes_unchanged(), 8u);
  EXPECT_EQ(planner_->bytes_wanted(), 9u + 8u + 8u);
  EXPECT_FALSE(incoming_.find(1));
  EXPECT_TRUE(incoming_.find(2));
}

TEST_F(PlannerTest, AnUnchangedFileGetsItsModeAndKeepsItsContents) {
  directory_.write("target/file", "contents");
  wire::ManifestEntry entry = announced(1, "file");
  entry.mode = 0640;
  EXPECT_EQ(plan({entry}), std::vector<PlanAction>{PlanAction::kUnchanged});
  EXPECT_EQ(directory_.lstat("target/file").st_mode & 07777u, 0640u);
  EXPECT_EQ(directory_.lstat("target/file").st_mtim.tv_nsec, long(entry.mtime_nanoseconds));
  EXPECT_EQ(directory_.read("target/file"), "contents");
}

TEST_F(PlannerTest, DirectoriesAreMadePrivateAndFinishedAtTheEndDeepestFirst) {
  wire::ManifestEntry root = directory_entry(0, 0, "");
  root.mode = 0751;
  wire::ManifestEntry upper = directory_entry(1, 0, "upper");
  upper.mode = 0555;
  wire::ManifestEntry lower = directory_entry(2, 1, "lower");
  lower.mode = 0500;
  EXPECT_EQ(plan({root, upper, lower}),
            (std::vector<PlanAction>{PlanAction::kKept, PlanAction::kMade, PlanAction::kMade}));
  EXPECT_EQ(directory_.lstat("target/upper").st_mode & 07777u, 0700u);
  EXPECT_EQ(directory_.lstat("target/upper/lower").st_mode & 07777u, 0700u);
  idle_.files().forget();
  planner_->finish_directories([] {});
  const auto found = list_tree(directory_.path("target"));
  EXPECT_EQ(found.at(".").mode, 0751u);
  EXPECT_EQ(found.at("upper").mode, 0555u);
  EXPECT_EQ(found.at("upper/lower").mode, 0500u);
  for (const char* path : {".", "upper", "upper/lower"}) {
    EXPECT_EQ(found.at(path).mtime_seconds, 1'700'000'000) << path;
    EXPECT_EQ(found.at(path).mtime_nanoseconds, 123'456'789) << path;
  }
  EXPECT_TRUE(errors().empty());
}

// Else the receipt would miss it for ever.
TEST_F(PlannerTest, AFileThatMakesWayIsStruckFromTheReceipt) {
  const auto record = [](const std::string& path) {
    return receipt::FileRecord{.path = path,
                               .size = 10,
                               .mtime = {1, 0},
                               .chunk_bytes = 64 * 1024,
                               .digest = checksum_of_text("in the way")};
  };
  start();
  const std::vector<receipt::Record> records = {record("directory"), record("link"),
                                                record("other")};
  receipt_->append(records);
  receipt_->settle();
  for (const char* name : {"directory", "link", "other"}) {
    directory_.write(std::string("target/") + name, "in the way");
  }
  (void)plan({directory_entry(0, 0, ""), directory_entry(1, 0, "directory"),
              symlink_entry(2, 0, "link", "elsewhere")});
  committer_->publish_markers({});
  receipt_->settle();
  const std::string left = directory_.read("target/.fgsync/receipt");
  EXPECT_EQ(left.find("directory"), std::string::npos);
  EXPECT_EQ(left.find("link"), std::string::npos);
  EXPECT_NE(left.find("other"), std::string::npos);
}

TEST_F(PlannerTest, WhatIsNoDirectoryMakesWayForOneAndASymlinkIsNotFollowed) {
  directory_.write("target/file", "in the way");
  directory_.make_symlink("../outside", "target/link");
  EXPECT_EQ(plan({directory_entry(1, 0, "file"), directory_entry(2, 0, "link"),
                  file_entry(3, 2, "kept", 10)}),
            (std::vector<PlanAction>{PlanAction::kMade, PlanAction::kMade, PlanAction::kSend}));
  EXPECT_TRUE(S_ISDIR(directory_.lstat("target/file").st_mode));
  EXPECT_TRUE(S_ISDIR(directory_.lstat("target/link").st_mode));
  EXPECT_EQ(directory_.read("outside/kept"), "kept");
}

TEST_F(PlannerTest, ADirectoryInTheWayOfAFileOrSymlinkFailsThatEntry) {
  directory_.make_directory("target/one");
  directory_.make_directory("target/two");
  EXPECT_EQ(plan({file_entry(1, 0, "one", 5), symlink_entry(2, 0, "two", "x")}),
            (std::vector<PlanAction>{PlanAction::kFailed, PlanAction::kFailed}));
  ASSERT_EQ(errors().size(), 2u);
  EXPECT_EQ(errors()[0].path, directory_.path("target/one"));
  EXPECT_EQ(errors()[1].path, directory_.path("target/two"));
  EXPECT_FALSE(session().failed());
}

TEST_F(PlannerTest, AFileTakesTheNameOfASymlinkWithoutTouchingWhereItLeads) {
  directory_.make_symlink("../outside/kept", "target/link");
  EXPECT_EQ(plan({file_entry(1, 0, "link", 4)}), std::vector<PlanAction>{PlanAction::kSend});
  EXPECT_EQ(directory_.read("outside/kept"), "kept");
}

TEST_F(PlannerTest, ASymlinkAtTheTopIsReplacedLastAndInOneStep) {
  directory_.make_symlink("old", "target/link");
  start();
  // A reader of the name never finds it missing: it is renamed over, never removed.
  idle_.files().on_operation([this](const RecordedOperation& operation) {
    EXPECT_FALSE(operation.operation == FileOperation::kUnlink && operation.name == "link");
    EXPECT_TRUE(directory_.exists("target/link"));
  });
  EXPECT_EQ(plan({symlink_entry(1, 0, "link", "new")}), std::vector<PlanAction>{PlanAction::kMade});
  EXPECT_EQ(list_tree(directory_.path("target")).at("link").contents, "old");
  committer_->publish_markers({});
  const auto found = list_tree(directory_.path("target"));
  EXPECT_EQ(found.at("link").contents, "new");
  EXPECT_EQ(found.at("link").mtime_nanoseconds, 123'456'789);
}

TEST_F(PlannerTest, ASymlinkBelowTheTopIsMadeAtOnce) {
  EXPECT_EQ(plan({directory_entry(1, 0, "below"), symlink_entry(2, 1, "link", "there"),
                  symlink_entry(3, 1, "latest", "there")}),
            std::vector<PlanAction>(3, PlanAction::kMade));
  EXPECT_TRUE(directory_.exists("target/below/link"));
  EXPECT_FALSE(directory_.exists("target/below/latest"));
}

TEST_F(PlannerTest, AFileThatIsAMarkerIsMarkedAsOne) {
  session().parameters.last = {"/below/*.done"};
  EXPECT_EQ(plan({directory_entry(1, 0, "below"), file_entry(2, 1, "a.done", 1),
                  file_entry(3, 1, ".metadata", 1), file_entry(4, 0, "a.done", 1)})
                .back(),
            PlanAction::kSend);
  EXPECT_TRUE(incoming_.find(2)->is_marker);
  EXPECT_TRUE(incoming_.find(3)->is_marker);
  EXPECT_FALSE(incoming_.find(4)->is_marker);
}

TEST_F(PlannerTest, ASymlinkThatIsRightIsKept) {
  directory_.make_symlink("right", "target/link");
  EXPECT_EQ(plan({symlink_entry(1, 0, "link", "right")}),
            std::vector<PlanAction>{PlanAction::kKept});
  EXPECT_EQ(idle_.files().count(FileOperation::kRename), 0u);
  EXPECT_EQ(directory_.lstat("target/link").st_mtim.tv_sec, 1'700'000'000);
}

TEST_F(PlannerTest, ASymlinkThatCannotBeRenamedLeavesNothingStaged) {
  directory_.make_symlink("old", "target/link");
  idle_.files().fail(FileOperation::kRename, 1, EIO);
  EXPECT_EQ(plan({symlink_entry(1, 0, "link", "new")}), std::vector<PlanAction>{PlanAction::kMade});
  committer_->publish_markers({});
  EXPECT_EQ(session().errors().total(), 1u);
  EXPECT_EQ(list_tree(directory_.path("target")).at("link").contents, "old");
  EXPECT_TRUE(staging_->clean().ok());
  EXPECT_FALSE(directory_.exists("target/.fgsync"));
}

// Each kind of change stops the plan, which goes on where it stopped.
TEST_F(PlannerTest, NothingIsChangedBeforeItMayBe) {
  directory_.write("target/same", "contents");
  directory_.make_directory("target/directory");
  directory_.make_symlink("there", "target/link");
  start();
  const auto before = list_tree(directory_.path("target"));
  wire::ManifestBatch batch = batch_of(
      {announced(1, "same"), directory_entry(2, 0, "directory"), file_entry(3, 0, "new", 1)});
  wire::PlanBatch plan;
  EXPECT_EQ(*planner_->plan(batch.entries, plan), 2u);
  EXPECT_EQ(*planner_->plan(std::span(batch.entries).subspan(2), plan), 0u);
  EXPECT_EQ(planner_->entries(), 3u);
  EXPECT_EQ(planner_->files(), 2u);
  EXPECT_EQ(plan.decisions.size(), 2u);
  EXPECT_TRUE(session().errors().errors().empty());
  for (const wire::ManifestEntry& entry :
       {directory_entry(4, 0, "made"), symlink_entry(4, 0, "link", "elsewhere")}) {
    planner_.reset();
    start();
    batch = batch_of({entry});
    EXPECT_EQ(*planner_->plan(batch.entries, plan), 0u);
  }
  EXPECT_EQ(list_tree(directory_.path("target")), before);
  planner_->may_change();
  EXPECT_EQ(*planner_->plan(batch.entries, plan), 1u);
  EXPECT_EQ(plan.decisions.back().action, PlanAction::kMade);
}

TEST_F(PlannerTest, ADryRunDecidesAndTouchesNothing) {
  directory_.write("target/same", "contents");
  directory_.write("target/file", "in the way");
  directory_.make_symlink("old", "target/link");
  directory_.make_directory("target/directory");
  const auto before = list_tree(directory_.path("target"));
  session().parameters.dry_run = true;
  wire::ManifestEntry same = announced(1, "same");
  same.mode = 0600;
  EXPECT_EQ(plan({same, directory_entry(2, 0, "file"), symlink_entry(3, 0, "link", "new"),
                  file_entry(4, 0, "new", 10), directory_entry(5, 0, "fresh"),
                  file_entry(6, 5, "below", 10), symlink_entry(7, 0, "directory", "x")}),
            (std::vector<PlanAction>{PlanAction::kUnchanged, PlanAction::kMade, PlanAction::kMade,
                                     PlanAction::kMade, PlanAction::kMade, PlanAction::kMade,
                                     PlanAction::kFailed}));
  planner_->finish_directories([] {});
  EXPECT_EQ(list_tree(directory_.path("target")), before);
  std::vector<std::string> changes;
  for (const EntryChange& change : session().take_changes()) {
    changes.push_back((change.is_replicated ? "" : "kept ") + change.path);
  }
  EXPECT_EQ(changes, (std::vector<std::string>{"kept same", "file/", "link", "new", "fresh/",
                                               "fresh/below"}));
}

TEST_F(PlannerTest, WhatIsNotToBeMadeIsPassedOverWithAllBelowIt) {
  directory_.write("target/there", "x");
  session().parameters.changes.existing_only = true;
  EXPECT_EQ(plan({file_entry(1, 0, "there", 10), file_entry(2, 0, "new", 10),
                  directory_entry(3, 0, "fresh"), directory_entry(4, 3, "deep"),
                  file_entry(5, 4, "file", 10), symlink_entry(6, 0, "link", "x")}),
            (std::vector<PlanAction>{PlanAction::kSend, PlanAction::kPassedOver,
                                     PlanAction::kPassedOver, PlanAction::kPassedOver,
                                     PlanAction::kPassedOver, PlanAction::kPassedOver}));
  EXPECT_EQ(planner_->files_passed_over(), 2u);
  EXPECT_EQ(planner_->bytes_wanted(), 10u);
}

TEST_F(PlannerTest, WhatIsThereIsPassedOverButForDirectories) {
  directory_.write("target/there", "x");
  directory_.make_directory("target/directory");
  directory_.make_symlink("old", "target/link");
  session().parameters.changes.new_only = true;
  EXPECT_EQ(plan({file_entry(1, 0, "there", 10), directory_entry(2, 0, "directory"),
                  file_entry(3, 2, "new", 10), symlink_entry(4, 0, "link", "x")}),
            (std::vector<PlanAction>{PlanAction::kPassedOver, PlanAction::kKept, PlanAction::kSend,
                                     PlanAction::kPassedOver}));
}

TEST_F(PlannerTest, BelowADirectoryThatCouldNotBeMadeEverythingFails) {
  start();
  idle_.files().fail(FileOperation::kMakeDirectory, 1, EACCES);
  EXPECT_EQ(plan({directory_entry(1, 0, "refused"), file_entry(2, 1, "file", 10),
                  directory_entry(3, 1, "deeper"), file_entry(4, 3, "file", 10),
                  symlink_entry(5, 3, "link", "x"), file_entry(6, 0, "beside", 10)}),
            (std::vector<PlanAction>{PlanAction::kFailed, PlanAction::kFailed, PlanAction::kFailed,
                                     PlanAction::kFailed, PlanAction::kFailed, PlanAction::kSend}));
  // The directory itself and each file below it, by their names.
  ASSERT_EQ(errors().size(), 3u);
  EXPECT_EQ(errors()[0].path, directory_.path("target/refused"));
  EXPECT_EQ(errors()[0].code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(errors()[1].path, directory_.path("target/refused/file"));
  EXPECT_EQ(errors()[2].path, directory_.path("target/refused/deeper/file"));
}

TEST_F(PlannerTest, AFullDiskEndsTheSession) {
  start();
  idle_.files().fail(FileOperation::kMakeDirectory, 1, ENOSPC);
  EXPECT_EQ(plan({directory_entry(1, 0, "new")}), std::vector<PlanAction>{PlanAction::kFailed});
  EXPECT_EQ(session().status().code(), ErrorCode::kNoSpace);
}

TEST_F(PlannerTest, EntriesOutOfOrderOrBelowNothingAreRefused) {
  EXPECT_EQ(refusal({file_entry(5, 0, "a", 1), file_entry(4, 0, "b", 1)}),
            ErrorCode::kProtocolError);
  EXPECT_EQ(refusal({file_entry(5, 0, "again", 1)}), ErrorCode::kProtocolError);
  EXPECT_EQ(refusal({file_entry(9, 7, "below nothing", 1)}), ErrorCode::kProtocolError);
  EXPECT_EQ(refusal({file_entry(20, 0, "file", 1), file_entry(21, 20, "below a file", 1)}),
            ErrorCode::kProtocolError);
  EXPECT_EQ(refusal({symlink_entry(30, 0, "away", "../outside"), file_entry(31, 30, "kept", 1)}),
            ErrorCode::kProtocolError);
  EXPECT_EQ(directory_.read("outside/kept"), "kept");
}

TEST_F(PlannerTest, OnlyTheExpectedNamesStandInTheRoot) {
  target_.accept.replica_of_contents = false;
  target_.expected = {{"file", wire::EntryType::kRegular}, {"tree", wire::EntryType::kDirectory}};
  EXPECT_EQ(plan({file_entry(1, 0, "file", 5), directory_entry(2, 0, "tree"),
                  file_entry(3, 2, "anything", 5)}),
            (std::vector<PlanAction>{PlanAction::kSend, PlanAction::kMade, PlanAction::kSend}));
  EXPECT_EQ(refusal({file_entry(10, 0, "other", 5)}), ErrorCode::kProtocolError);
  EXPECT_EQ(refusal({file_entry(11, 0, "tree", 5)}), ErrorCode::kProtocolError);
  EXPECT_EQ(refusal({directory_entry(12, 0, "file")}), ErrorCode::kProtocolError);
}

TEST_F(PlannerTest, TheLargestFileIsBoundByItsChunks) {
  const std::uint64_t most = session().parameters.file_bytes_max();
  EXPECT_EQ(plan({file_entry(1, 0, "most", most), file_entry(2, 0, "more", most + 1)}),
            (std::vector<PlanAction>{PlanAction::kSend, PlanAction::kFailed}));
  ASSERT_EQ(errors().size(), 1u);
  EXPECT_EQ(errors()[0].code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace fgsync::transfer
