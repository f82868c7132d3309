// The durability order, proven by what the file system was asked for and what the peer was told.
#include "transfer/committer.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "support/idle_session.h"
#include "support/scripted_peer.h"
#include "support/temporary_directory.h"
#include "support/tree_listing.h"
#include "transfer/planner.h"

namespace fgsync::transfer {
namespace {

using namespace testing;  // NOLINT: the fakes

constexpr std::uint64_t kLargeBytes = 16u << 20;  // from here on a file is synced by itself

class CommitterTest : public ::testing::Test {
 protected:
  CommitterTest() {
    idle_.session->parameters.chunk_bytes = kLargeBytes / 4;
    directory_.make_directory("target");
    Result<io::FileHandle> root = idle_.files().open_path(directory_.path("target"));
    EXPECT_TRUE(root.ok());
    directories_ = std::make_unique<storage::DirectoryTree>(idle_.files(), std::move(*root), 12);
    staging_ = std::make_unique<storage::StagingArea>(idle_.files(), "test");
    start(/*receipt_is_durable=*/false);
  }
  // The receipt's own syncs only where a test asks for them.
  void start(bool receipt_is_durable) {
    committer_.reset();
    receipt_ = std::make_unique<receipt::ReceiptWriter>(
        idle_.session->environment(), *directories_, receipt_is_durable, [](const std::string&) {});
    committer_ = std::make_unique<Committer>(*idle_.session, *directories_, *receipt_,
                                             directory_.path("target"));
  }

  // A file that is written and only waits for its name. `size` is what the manifest says of it.
  StagedEntry stage(std::uint64_t id, const std::string& name, const std::string& contents,
                    std::uint64_t size, std::uint64_t parent = 0) {
    auto root = directories_->open(0);
    EXPECT_TRUE(root.ok());
    Result<io::FileStatus> status = idle_.files().stat(**root);
    EXPECT_TRUE(status.ok());
    auto staging = staging_->on_mount(status->mount, *root);
    EXPECT_TRUE(staging.ok());
    auto staged = storage::StagedFile::create(idle_.files(), *staging, staging_->next_name(),
                                              contents.size(), DirectIo::kNever);
    EXPECT_TRUE(staged.ok());
    EXPECT_TRUE((*staged)->write(bytes_of(contents), 0).ok());
    auto file = std::make_shared<IncomingFile>(file_entry(id, parent, name, size));
    EXPECT_TRUE((*staged)->finish(metadata_of(file->entry)).ok());
    return {file, std::shared_ptr<storage::StagedFile>(std::move(*staged)),
            checksum_of_text(contents)};
  }
  // As its worker does it. `size` is what the manifest says.
  void add(std::uint64_t id, const std::string& name, const std::string& contents,
           std::uint64_t size) {
    std::vector<StagedEntry> entries;
    entries.push_back(stage(id, name, contents, size));
    const Status sealed = committer_->seal(entries[0]);
    if (sealed.ok()) {
      committer_->add(std::move(entries));
    } else {
      committer_->fail(*entries[0].file, sealed);
    }
  }
  void add(std::uint64_t id, const std::string& name, const std::string& contents) {
    add(id, name, contents, contents.size());
  }
  // Syncs and renames, in order: "syncfs", "fsync", "rename NAME".
  std::vector<std::string> order() {
    std::vector<std::string> steps;
    for (const RecordedOperation& recorded : idle_.files().recorded()) {
      if (recorded.operation == FileOperation::kSyncFileSystem) steps.push_back("syncfs");
      if (recorded.operation == FileOperation::kSync) steps.push_back("fsync");
      if (recorded.operation == FileOperation::kRename) steps.push_back("rename " + recorded.name);
    }
    return steps;
  }
  // What the peer was told of each entry.
  std::map<std::uint64_t, bool> settled() {
    std::map<std::uint64_t, bool> settled;
    for (const wire::Message& message : idle_.told()) {
      const auto* batch = std::get_if<wire::SettledBatch>(&message);
      if (batch == nullptr) continue;
      for (const wire::EntrySettled& entry : batch->entries) {
        EXPECT_FALSE(settled.contains(entry.id)) << "settled twice";
        settled[entry.id] = entry.replicated;
      }
    }
    return settled;
  }

  const TemporaryDirectory directory_;
  IdleSession idle_;
  std::unique_ptr<storage::DirectoryTree> directories_;
  std::unique_ptr<storage::StagingArea> staging_;
  std::unique_ptr<receipt::ReceiptWriter> receipt_;
  std::unique_ptr<Committer> committer_;
};

using Settled = std::map<std::uint64_t, bool>;

TEST_F(CommitterTest, ABatchIsSyncedOnceAndOnlyThenNamed) {
  add(1, "one", "first");
  add(2, "two", "second");
  EXPECT_TRUE(order().empty());
  EXPECT_FALSE(directory_.exists("target/one"));
  committer_->flush();
  EXPECT_EQ(order(), (std::vector<std::string>{"syncfs", "rename one", "rename two"}));
  EXPECT_EQ(directory_.read("target/one"), "first");
  EXPECT_EQ(directory_.lstat("target/two").st_mtim.tv_nsec, 123'456'789);
  EXPECT_EQ(committer_->files_replicated(), 2u);
  EXPECT_EQ(committer_->bytes_replicated(), 11u);
  EXPECT_EQ(settled(), (Settled{{1, true}, {2, true}}));
}

TEST_F(CommitterTest, AFlushWithNothingWaitingAsksForNothing) {
  committer_->flush();
  EXPECT_TRUE(order().empty());
}

TEST_F(CommitterTest, ALargeFileIsSyncedByItselfAndPublishedAtOnce) {
  add(1, "small", "waits");
  add(2, "large", "stands for much", kLargeBytes);
  EXPECT_EQ(order(), (std::vector<std::string>{"fsync", "rename large"}));
  EXPECT_FALSE(directory_.exists("target/small"));
  EXPECT_EQ(settled(), (Settled{{2, true}}));
}

TEST_F(CommitterTest, OneThatIsNotLargeWaitsForCompany) {
  add(1, "medium", "contents", kLargeBytes - 1);
  EXPECT_TRUE(order().empty());
  committer_->flush();
  EXPECT_EQ(order(), (std::vector<std::string>{"syncfs", "rename medium"}));
}

TEST_F(CommitterTest, ABatchIsPublishedWhenItIsLargeEnough) {
  for (std::uint64_t id = 1; id <= 4; ++id) {
    add(id, std::to_string(id), "x", kLargeBytes - 1);
  }
  EXPECT_TRUE(order().empty());  // 4 bytes less than 64 MiB
  add(5, "5", "12345");
  EXPECT_EQ(order().size(), 6u);
  EXPECT_EQ(committer_->files_replicated(), 5u);
}

TEST_F(CommitterTest, NothingWaitsLongerThanTwoLooks) {
  EXPECT_FALSE(committer_->is_stale());
  add(1, "one", "x");
  EXPECT_FALSE(committer_->is_stale());
  EXPECT_TRUE(committer_->is_stale());
  committer_->flush();
  EXPECT_FALSE(committer_->is_stale());
}

TEST_F(CommitterTest, AFailedSyncOfABatchEndsTheSessionAndKeepsTheOldVersions) {
  directory_.write("target/one", "old");
  add(1, "one", "new");
  add(2, "two", "new");
  idle_.files().fail(FileOperation::kSyncFileSystem, 1, EIO);
  committer_->flush();
  EXPECT_EQ(order(), std::vector<std::string>{"syncfs"});
  EXPECT_EQ(idle_.session->status().code(), ErrorCode::kIoError);
  // The next sync would succeed: the kernel reports a lost page once. What it covers is not
  // published either.
  add(3, "three", "new");
  committer_->flush();
  EXPECT_EQ(order(), std::vector<std::string>{"syncfs"});
  EXPECT_EQ(directory_.read("target/one"), "old");
  EXPECT_FALSE(directory_.exists("target/two"));
  EXPECT_FALSE(directory_.exists("target/three"));
  EXPECT_EQ(committer_->files_replicated(), 0u);
  for (const auto& [id, replicated] : settled()) EXPECT_FALSE(replicated) << id;
  EXPECT_TRUE(staging_->clean().ok());
  EXPECT_FALSE(list_tree(directory_.path("target")).contains(".fgsync"));
}

TEST_F(CommitterTest, TheRecordOfALargeFileIsDurableBeforeItsName) {
  start(/*receipt_is_durable=*/true);
  add(1, "large", "stands for much", kLargeBytes);
  add(2, "larger", "stands for much", kLargeBytes);
  // The file, its record, and once the names of the new receipt and of what holds it.
  EXPECT_EQ(order(), (std::vector<std::string>{"fsync", "fsync", "fsync", "fsync", "rename large",
                                               "fsync", "fsync", "rename larger"}));
}

// What one flush makes durable, it makes durable with its record.
TEST_F(CommitterTest, AFileIsInTheReceiptBeforeTheFlush) {
  std::string at_flush;
  idle_.files().on_operation([&](const RecordedOperation& recorded) {
    if (recorded.operation != FileOperation::kSyncFileSystem) return;
    at_flush = directory_.read("target/.fgsync/receipt");
  });
  add(1, "named-so", "contents");
  committer_->flush();
  EXPECT_NE(at_flush.find("named-so"), std::string::npos);
}

TEST_F(CommitterTest, AFailedSyncOfALargeFileFailsItAlone) {
  directory_.write("target/large", "old");
  idle_.files().fail(FileOperation::kSync, 1, EIO);
  add(1, "large", "new", kLargeBytes);
  add(2, "small", "new");
  committer_->flush();
  EXPECT_EQ(directory_.read("target/large"), "old");
  EXPECT_EQ(directory_.read("target/small"), "new");
  EXPECT_EQ(settled(), (Settled{{1, false}, {2, true}}));
}

TEST_F(CommitterTest, WithFullEachFileIsSyncedByItselfAndItsDirectoryBeforeItIsSettled) {
  idle_.session->parameters.durability = Durability::kFull;
  add(1, "one", "first");
  add(2, "two", "second");
  EXPECT_EQ(order(), (std::vector<std::string>{"fsync", "fsync"}));
  committer_->flush();
  // The flush is for the target's own name: this run may have made it.
  EXPECT_EQ(order(), (std::vector<std::string>{"fsync", "fsync", "rename one", "rename two",
                                               "fsync", "syncfs"}));
  idle_.files().forget();
  add(3, "large", "stands for much", kLargeBytes);
  EXPECT_EQ(order(), (std::vector<std::string>{"fsync", "rename large", "fsync"}));
  EXPECT_EQ(settled(), (Settled{{1, true}, {2, true}, {3, true}}));
}

TEST_F(CommitterTest, WithFullTheNamesOfTheDirectoriesAboveAreDurableToo) {
  idle_.session->parameters.durability = Durability::kFull;
  directory_.make_directory("target/above");
  directory_.make_directory("target/above/below");
  ASSERT_TRUE(directories_->add(10, 0, "above"));
  ASSERT_TRUE(directories_->add(11, 10, "below"));
  for (const std::uint64_t id : {12u, 13u}) {
    std::vector<StagedEntry> entries;
    entries.push_back(stage(id, std::to_string(id), "x", 1, 11));
    committer_->add(std::move(entries));
    committer_->flush();
  }
  // Below, above, the root and what the root stands in; then below alone.
  EXPECT_EQ(order(), (std::vector<std::string>{"rename 12", "fsync", "fsync", "fsync", "syncfs",
                                               "rename 13", "fsync"}));
  EXPECT_TRUE(directory_.exists("target/above/below/13"));
}

TEST_F(CommitterTest, WithFullAFailedSyncFailsItsFileAlone) {
  idle_.session->parameters.durability = Durability::kFull;
  directory_.write("target/one", "old");
  idle_.files().fail(FileOperation::kSync, 1, EIO);
  add(1, "one", "new");
  add(2, "two", "new");
  committer_->flush();
  EXPECT_EQ(directory_.read("target/one"), "old");
  EXPECT_EQ(directory_.read("target/two"), "new");
  EXPECT_EQ(settled(), (Settled{{1, false}, {2, true}}));
}

TEST_F(CommitterTest, WithFullANameThatIsNotDurableIsNeverSettledAsDone) {
  idle_.session->parameters.durability = Durability::kFull;
  add(1, "one", "new");
  idle_.files().fail(FileOperation::kSync, 1, EIO);
  committer_->flush();
  EXPECT_EQ(idle_.session->errors().total(), 1u);
  EXPECT_EQ(committer_->files_replicated(), 0u);
  EXPECT_EQ(settled(), (Settled{{1, false}}));
}

TEST_F(CommitterTest, WithNoneNothingIsSynced) {
  idle_.session->parameters.durability = Durability::kNone;
  add(1, "one", "first");
  add(2, "large", "stands for much", kLargeBytes);
  committer_->flush();
  EXPECT_EQ(order(), (std::vector<std::string>{"rename large", "rename one"}));
  EXPECT_EQ(settled(), (Settled{{1, true}, {2, true}}));
}

// What the disk has of every staged file, behind everybody's back.
void spoil(const std::string& target) {
  for (const auto& staging : std::filesystem::directory_iterator(target + "/.fgsync")) {
    if (!staging.is_directory()) continue;  // the receipt
    for (const auto& file : std::filesystem::directory_iterator(staging)) {
      std::fstream contents(file.path(), std::ios::in | std::ios::out);
      contents.put('#');
    }
  }
}

TEST_F(CommitterTest, WhatIsReadBackDifferentIsNotPublished) {
  idle_.session->parameters.read_back = true;
  directory_.write("target/one", "old");
  add(1, "one", "new");
  add(2, "two", "new");
  idle_.files().on_operation([&](const RecordedOperation& operation) {
    if (operation.operation == FileOperation::kSyncFileSystem) spoil(directory_.path("target"));
  });
  committer_->flush();
  EXPECT_EQ(order(), std::vector<std::string>{"syncfs"});
  EXPECT_EQ(directory_.read("target/one"), "old");
  EXPECT_FALSE(directory_.exists("target/two"));
  ASSERT_EQ(idle_.session->errors().total(), 2u);
  EXPECT_EQ(idle_.session->errors().errors()[0].code, ErrorCode::kChecksumMismatch);
  EXPECT_TRUE(idle_.session->status().ok());
  EXPECT_EQ(settled(), (Settled{{1, false}, {2, false}}));
}

TEST_F(CommitterTest, ALargeFileIsReadBackChunkByChunkAfterItsOwnSync) {
  idle_.session->parameters.read_back = true;
  const std::uint64_t chunk = idle_.session->parameters.chunk_bytes;
  const std::string contents = contents_of(kLargeBytes + chunk / 2, 7);
  std::vector<StagedEntry> entries;
  for (const std::uint64_t id : {1u, 2u}) {
    entries.push_back(stage(id, "large" + std::to_string(id), contents, contents.size()));
    for (std::uint64_t at = 0; at < contents.size(); at += chunk) {
      entries.back().file->checksums.push_back(checksum_of_text(contents.substr(at, chunk)));
    }
  }
  EXPECT_TRUE(committer_->seal(entries[0]).ok());
  entries[1].file->checksums.back() = entries[1].file->checksums.front();
  const Status sealed = committer_->seal(entries[1]);
  EXPECT_EQ(sealed.code(), ErrorCode::kChecksumMismatch);
  EXPECT_NE(sealed.message().find("bytes 16777216 to 18874368 differ"), std::string::npos)
      << sealed.message();
  EXPECT_EQ(order(), (std::vector<std::string>{"fsync", "fsync"}));
  EXPECT_EQ(idle_.files().count(FileOperation::kDropCached), 2u);
  EXPECT_GT(idle_.session->meter().figures(Stage::kVerify).bytes, kLargeBytes);
}

TEST_F(CommitterTest, WhatCannotBeReadBackIsNotPublished) {
  idle_.session->parameters.read_back = true;
  add(1, "one", "new");
  idle_.files().fail(FileOperation::kRead, 1, EIO);
  committer_->flush();
  EXPECT_FALSE(directory_.exists("target/one"));
  EXPECT_EQ(idle_.session->errors().errors()[0].code, ErrorCode::kIoError);
}

TEST_F(CommitterTest, AnEmptyFileIsReadBackToo) {
  idle_.session->parameters.read_back = true;
  add(1, "empty", "");
  committer_->flush();
  EXPECT_TRUE(directory_.exists("target/empty"));
  EXPECT_EQ(settled(), (Settled{{1, true}}));
}

TEST_F(CommitterTest, AFailedRenameFailsItsFileAndIsNeverSettledAsDone) {
  directory_.write("target/one", "old");
  add(1, "one", "new");
  add(2, "two", "new");
  idle_.files().fail(FileOperation::kRename, 1, EACCES);
  committer_->flush();
  EXPECT_EQ(directory_.read("target/one"), "old");
  EXPECT_EQ(directory_.read("target/two"), "new");
  EXPECT_EQ(committer_->files_replicated(), 1u);
  EXPECT_EQ(settled(), (Settled{{1, false}, {2, true}}));
}

TEST_F(CommitterTest, ADirectoryInTheWayFailsItsFile) {
  directory_.make_directory("target/one");
  add(1, "one", "new");
  committer_->flush();
  ASSERT_EQ(idle_.session->errors().total(), 1u);
  EXPECT_EQ(idle_.session->errors().errors()[0].code, ErrorCode::kIoError);
  EXPECT_EQ(settled(), (Settled{{1, false}}));
}

TEST_F(CommitterTest, AFullDiskFailsTheSession) {
  directory_.write("target/one", "old");
  add(1, "one", "new");
  idle_.files().fail(FileOperation::kSyncFileSystem, 1, ENOSPC);
  committer_->flush();
  EXPECT_EQ(idle_.session->status().code(), ErrorCode::kNoSpace);
  EXPECT_EQ(directory_.read("target/one"), "old");
  EXPECT_TRUE(settled().empty());
}

TEST_F(CommitterTest, WhatTheSenderHasWithdrawnIsSettledWithoutAnErrorOfItsOwn) {
  IncomingFile file(file_entry(7, 0, "gone", 5));
  committer_->settle_failed(file);
  EXPECT_EQ(idle_.session->errors().total(), 0u);
  EXPECT_EQ(settled(), (Settled{{7, false}}));
}

}  // namespace
}  // namespace fgsync::transfer
