#include "receipt/receipt_writer.h"

#include <algorithm>
#include <cerrno>
#include <map>

#include "io/posix_environment.h"
#include "receipt/receipt_fixture.h"
#include "support/faulty_file_system.h"
#include "support/test_runtime.h"

namespace fgsync::receipt {
namespace {

using testing::FaultyFileSystem;
using testing::FileOperation;
using testing::record_of;

class ReceiptWriterTest : public testing::ReceiptFixture {
 protected:
  std::unique_ptr<ReceiptWriter> writer(bool durable = true) {
    return std::make_unique<ReceiptWriter>(
        environment_, target_, durable,
        [this](const std::string& note) { notes_.push_back(note); });
  }
  void append(ReceiptWriter& writer, const std::vector<Record>& records) { writer.append(records); }
  // What is in the receipt now, or nothing if there is none that can be read.
  std::vector<Record> stored() {
    if (!directory.exists(".fgsync/receipt")) return {};
    const io::FileHandle state = open_path(directory.path(".fgsync"));
    auto file = files->open_file(state, "receipt", io::OpenMode::kRead);
    if (!file.ok()) return {};
    auto reader = ReceiptReader::open(*files, *file);
    return reader.ok() ? records_of(*reader) : std::vector<Record>();
  }
  // A file of the target as this record has it.
  void put(const FileRecord& record) {
    directory.write(record.path, std::string(record.size, 'x'));
    auto file = files->open_file(root, record.path, io::OpenMode::kRead);
    ASSERT_TRUE(files->set_mtime(*file, record.mtime).ok());
  }
  std::vector<std::string> state_names() {
    std::vector<io::DirectoryEntry> entries;
    const io::FileHandle state = open_path(directory.path(".fgsync"));
    auto listing = files->list(state);
    EXPECT_TRUE((*listing)->next(100, entries).ok());
    std::vector<std::string> names;
    for (const auto& entry : entries) names.push_back(entry.name);
    return names;
  }

  FaultyFileSystem faulty_{io::make_posix_file_system()};
  const std::unique_ptr<io::Environment> real_ = io::make_posix_environment();
  testing::TestEnvironment environment_{*real_, faulty_};
  storage::DirectoryTree target_{faulty_, open_root(), 4};
  std::vector<std::string> notes_;
};

TEST_F(ReceiptWriterTest, NothingIsMadeBeforeTheFirstRecord) {
  const auto receipt = writer();
  receipt->settle();
  EXPECT_FALSE(directory.exists(".fgsync"));
  append(*receipt, {record_of("a")});
  EXPECT_EQ(directory.lstat(".fgsync").st_mode, S_IFDIR | 0700u);
  EXPECT_EQ(directory.lstat(".fgsync/receipt").st_mode, S_IFREG | 0600u);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(ReceiptWriterTest, RunsAddToOneReceipt) {
  for (const char* path : {"a", "b", "a"}) {
    const auto receipt = writer();
    append(*receipt, {record_of(path)});
    receipt->settle();
  }
  EXPECT_EQ(stored(),
            (std::vector<Record>{record_of("a"), SettledRecord{1, 1}, record_of("b"),
                                 SettledRecord{2, 1}, record_of("a"), SettledRecord{3, 1}}));
  EXPECT_TRUE(notes_.empty());
}

TEST_F(ReceiptWriterTest, ARunWithNothingToSayLeavesTheReceiptAsItIs) {
  {
    const auto receipt = writer();
    append(*receipt, {record_of("a")});
    receipt->settle();
  }
  const std::string before = directory.read(".fgsync/receipt");
  const struct stat status = directory.lstat(".fgsync/receipt");
  writer()->settle();
  EXPECT_EQ(directory.read(".fgsync/receipt"), before);
  EXPECT_EQ(directory.lstat(".fgsync/receipt").st_ino, status.st_ino);
}

// Each record is on the disk before its file may be renamed: by its own sync, names included.
TEST_F(ReceiptWriterTest, SyncMakesANewReceiptDurableWithItsNames) {
  const auto receipt = writer();
  append(*receipt, {record_of("a")});
  faulty_.forget();
  receipt->sync();
  EXPECT_EQ(faulty_.count(FileOperation::kSync), 3u);  // the file, the state directory, the root
  receipt->sync();
  EXPECT_EQ(faulty_.count(FileOperation::kSync), 3u);
  append(*receipt, {record_of("b")});
  receipt->sync();
  EXPECT_EQ(faulty_.count(FileOperation::kSync), 4u);
}

TEST_F(ReceiptWriterTest, WithoutDurabilityNothingIsSynced) {
  const auto receipt = writer(/*durable=*/false);
  append(*receipt, {record_of("a")});
  receipt->sync();
  receipt->settle();
  EXPECT_EQ(faulty_.count(FileOperation::kSync), 0u);
  EXPECT_EQ(stored().size(), 2u);
}

TEST_F(ReceiptWriterTest, KnowsItsMount) {
  const auto receipt = writer();
  const std::uint64_t mount = files->stat(root)->mount;
  EXPECT_FALSE(receipt->is_on(mount));
  append(*receipt, {record_of("a")});
  EXPECT_TRUE(receipt->is_on(mount));
  EXPECT_FALSE(receipt->is_on(mount + 1));
}

TEST_F(ReceiptWriterTest, WhatAKilledRunHasLeftIsSettledByWhatIsThere) {
  put(record_of("kept", 1, 1));
  put(record_of("published", 2, 2));
  {
    const auto receipt = writer();
    append(*receipt,
           {record_of("kept", 1, 1), record_of("replaced", 1, 1), record_of("removed", 1, 1)});
    receipt->settle();
  }
  {
    const auto killed = writer();
    append(*killed, {record_of("published", 2, 2), record_of("never published", 3, 3),
                     record_of("kept", 3, 3), GoneRecord{"removed"}});
  }
  {
    const auto receipt = writer();
    put(record_of("replaced", 4, 4));
    append(*receipt, {record_of("replaced", 4, 4)});
    receipt->settle();
  }
  EXPECT_EQ(stored(), (std::vector<Record>{record_of("kept", 1, 1), record_of("replaced", 4, 4),
                                           record_of("published", 2, 2), SettledRecord{3, 3}}));
  EXPECT_EQ(state_names(), std::vector<std::string>{"receipt"});
  EXPECT_TRUE(notes_.empty());
}

TEST_F(ReceiptWriterTest, AGoodRunThatAddsNothingSettlesToo) {
  put(record_of("published", 2, 2));
  append(*writer(), {record_of("published", 2, 2), record_of("never published", 3, 3)});
  writer()->settle();
  EXPECT_EQ(stored(), (std::vector<Record>{record_of("published", 2, 2), SettledRecord{1, 1}}));
}

TEST_F(ReceiptWriterTest, WhatDidNotHappenInThisRunIsNotSettled) {
  put(record_of("published", 2, 2));
  const auto receipt = writer();
  append(*receipt, {record_of("published", 2, 2), record_of("could not be renamed", 3, 3)});
  receipt->distrust();
  receipt->settle();
  EXPECT_EQ(stored(), (std::vector<Record>{record_of("published", 2, 2), SettledRecord{1, 1}}));
}

TEST_F(ReceiptWriterTest, AMissingFileStaysExpectedUntilItIsSaidToBeGone) {
  {
    const auto receipt = writer();
    append(*receipt, {record_of("lost"), record_of("deleted")});
    receipt->settle();
  }
  append(*writer(), {record_of("never published")});
  {
    const auto receipt = writer();
    append(*receipt, {GoneRecord{"deleted"}});
    receipt->settle();
  }
  EXPECT_EQ(stored(), (std::vector<Record>{record_of("lost"), SettledRecord{1, 1}}));
}

TEST_F(ReceiptWriterTest, ATornTailIsCut) {
  {
    const auto receipt = writer();
    append(*receipt, {record_of("a")});
    receipt->settle();
  }
  directory.write(".fgsync/receipt",
                  directory.read(".fgsync/receipt") + "torn" + std::string(kBlockBytes, '\0'));
  const auto receipt = writer();
  append(*receipt, {record_of("b")});
  receipt->settle();
  EXPECT_EQ(stored(), (std::vector<Record>{record_of("a"), SettledRecord{1, 1}, record_of("b"),
                                           SettledRecord{2, 1}}));
  EXPECT_TRUE(notes_.empty());
}

TEST_F(ReceiptWriterTest, AReceiptMuchLongerThanItsPathsIsWrittenAnew) {
  std::vector<Record> all;
  for (int i = 0; i < 1000; ++i) {
    all.emplace_back(record_of("f" + std::to_string(i), 1, 0));
  }
  std::size_t longest = 0;
  for (std::uint32_t run = 0; run < 20; ++run) {
    const auto receipt = writer();
    for (Record& record : all) std::get<FileRecord>(record).mtime.nanoseconds = run;
    append(*receipt, all);
    receipt->settle();
    longest = std::max(longest, stored().size());
  }
  // Twice the thousand, the 4096 that are tolerated, and one run's more.
  EXPECT_LE(longest, 2u * 1000 + 4096 + 1000 + 20);
  EXPECT_LT(stored().size(), 20u * 1000);
  std::map<std::string, std::uint32_t> last;
  for (const Record& record : stored()) {
    if (const auto* file = std::get_if<FileRecord>(&record)) {
      last[file->path] = file->mtime.nanoseconds;
    }
  }
  ASSERT_EQ(last.size(), 1000u);
  for (const auto& [path, nanoseconds] : last) EXPECT_EQ(nanoseconds, 19u) << path;
}

TEST_F(ReceiptWriterTest, OneThatCannotBeUsedIsReplacedWithANote) {
  const std::string foreign(100, 'x');
  std::string newer;
  {
    append(*writer(), {record_of("a")});
    newer = directory.read(".fgsync/receipt");
    newer[8] = 9;
  }
  for (const std::string& contents : {foreign, newer}) {
    directory.write(".fgsync/receipt", contents);
    notes_.clear();
    const auto receipt = writer();
    append(*receipt, {record_of("b")});
    receipt->settle();
    EXPECT_EQ(stored(), (std::vector<Record>{record_of("b"), SettledRecord{1, 1}}));
    EXPECT_EQ(notes_.size(), 1u);
  }
}

TEST_F(ReceiptWriterTest, OneThatCannotBeUsedIsLeftAloneWhereNothingIsAdded) {
  append(*writer(), {record_of("a")});
  std::string newer = directory.read(".fgsync/receipt");
  newer[8] = 9;
  directory.write(".fgsync/receipt", newer);
  writer()->settle();
  EXPECT_EQ(directory.read(".fgsync/receipt"), newer);
  EXPECT_EQ(notes_.size(), 1u);
}

TEST_F(ReceiptWriterTest, WhatStandsInItsPlaceMakesWayIfItCan) {
  directory.make_directory(".fgsync");
  directory.make_symlink("/nowhere", ".fgsync/receipt");
  append(*writer(), {record_of("a")});
  EXPECT_EQ(stored().size(), 1u);
  ASSERT_EQ(::unlink(directory.path(".fgsync/receipt").c_str()), 0);
  directory.make_directory(".fgsync/receipt");
  append(*writer(), {record_of("a")});
  EXPECT_EQ(stored().size(), 1u);
  ASSERT_EQ(::unlink(directory.path(".fgsync/receipt").c_str()), 0);
  directory.make_directory(".fgsync/receipt");
  directory.write(".fgsync/receipt/somebody's", "x");
  notes_.clear();
  const auto receipt = writer();
  append(*receipt, {record_of("a")});
  receipt->settle();
  EXPECT_EQ(directory.read(".fgsync/receipt/somebody's"), "x");
  EXPECT_FALSE(notes_.empty());
}

TEST_F(ReceiptWriterTest, ADamagedOneIsWrittenAnewWithANote) {
  std::vector<Record> records;
  for (int i = 0; i < 5000; ++i) records.emplace_back(record_of("f" + std::to_string(i)));
  {
    const auto receipt = writer();
    append(*receipt, records);
    receipt->settle();
  }
  std::string contents = directory.read(".fgsync/receipt");
  contents[kBlockBytes + 10] ^= 1;
  directory.write(".fgsync/receipt", contents);
  writer()->settle();
  EXPECT_EQ(notes_.size(), 1u);
  const std::size_t left = stored().size();
  EXPECT_LT(left, 5001u);
  EXPECT_GT(left, 5001u - kBlockBytes / 68);
  notes_.clear();
  writer()->settle();
  EXPECT_TRUE(notes_.empty());
}

TEST_F(ReceiptWriterTest, WhatIsAddedToADamagedOneIsKept) {
  {
    const auto receipt = writer();
    append(*receipt, {record_of("a"), record_of("b")});
    receipt->settle();
  }
  put(record_of("c"));
  std::string contents = directory.read(".fgsync/receipt");
  contents[kHeaderBytes + 100] ^= 1;  // in "b"
  directory.write(".fgsync/receipt", contents);
  const auto receipt = writer();
  append(*receipt, {record_of("c")});
  receipt->settle();
  EXPECT_EQ(stored(), (std::vector<Record>{record_of("a"), record_of("c"), SettledRecord{2, 2}}));
}

// Each of its file operations fails once, the first, the second and so on: the run hears of it by a
// note, and what is left of the receipt lacks no record of this run.
TEST_F(ReceiptWriterTest, TroubleCostsTheReceiptAtMost) {
  put(record_of("a", 1, 1));
  constexpr FileOperation kOperations[] = {
      FileOperation::kOpenDirectory, FileOperation::kOpenFile, FileOperation::kStat,
      FileOperation::kStatAt,        FileOperation::kRead,     FileOperation::kWrite,
      FileOperation::kTruncate,      FileOperation::kSync,     FileOperation::kMakeDirectory,
      FileOperation::kRename,        FileOperation::kUnlink};
  for (const FileOperation operation : kOperations) {
    for (std::uint64_t nth = 1; nth < 100; ++nth) {
      // A killed run has left a tail, so that this one has something to look up and to write anew.
      (void)::unlink(directory.path(".fgsync/receipt").c_str());
      append(*writer(), {record_of("never published", 9, 9), record_of("a", 9, 9)});
      FaultyFileSystem faulty(io::make_posix_file_system());
      testing::TestEnvironment environment(*real_, faulty);
      storage::DirectoryTree target(faulty, open_root(), 4);
      faulty.fail(operation, nth, EIO);
      std::vector<std::string> notes;
      ReceiptWriter receipt(environment, target, true,
                            [&](const std::string& note) { notes.push_back(note); });
      const std::vector<Record> records = {record_of("a", 1, 1)};
      receipt.append(records);
      receipt.sync();
      receipt.settle();
      if (faulty.failures() == 0) break;
      const std::vector<Record> left = stored();
      EXPECT_TRUE(left.empty() || std::ranges::find(left, records[0]) != left.end())
          << int(operation) << " " << nth;
    }
  }
}

}  // namespace
}  // namespace fgsync::receipt
