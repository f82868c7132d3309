#include "receipt/receipt_index.h"

#include <set>

#include "receipt/receipt_fixture.h"

namespace fgsync::receipt {
namespace {

using testing::record_of;

class ReceiptIndexTest : public testing::ReceiptFixture {
 protected:
  static constexpr std::size_t kSlots = 1024;

  // Of a receipt with these records; those from the `unsure`-th on are not to be trusted.
  void load(const std::vector<Record>& records, std::size_t unsure) {
    const std::vector<Record> sure(records.begin(), records.begin() + std::ptrdiff_t(unsure));
    file_ = receipt_of(log_of(records));
    reader_.emplace(reader_of(file_));
    index_.emplace(*reader_, *reader_->summarize(), kSlots);
    ASSERT_EQ(index_->parts(), 1u);
    ASSERT_TRUE(index_->load(0, log_of(sure).size()).ok());
  }
  static io::FileStatus present(std::uint64_t size, std::uint32_t nanoseconds,
                                io::FileType type = io::FileType::kRegular) {
    io::FileStatus status;
    status.type = type;
    status.size = size;
    status.mtime = {1'700'000'000, nanoseconds};
    return status;
  }
  Finding find(const std::string& path, const std::optional<io::FileStatus>& status) {
    auto finding = index_->find(path, status);
    EXPECT_TRUE(finding.ok());
    return *finding;
  }

  io::FileHandle file_;
  std::optional<ReceiptReader> reader_;
  std::optional<ReceiptIndex> index_;
};

TEST_F(ReceiptIndexTest, TheLaterRecordOfAPathCounts) {
  load({record_of("a", 1, 1), record_of("b", 1, 1), record_of("a", 2, 2)}, 3);
  EXPECT_EQ(find("a", present(2, 2)).matching, record_of("a", 2, 2));
  EXPECT_FALSE(find("a", present(1, 1)).matching);
  EXPECT_EQ(find("a", present(1, 1)).expected, record_of("a", 2, 2));
  EXPECT_EQ(find("b", std::nullopt).expected, record_of("b", 1, 1));
  EXPECT_FALSE(find("c", present(1, 1)).matching);
  EXPECT_FALSE(find("c", present(1, 1)).expected);
}

TEST_F(ReceiptIndexTest, ARecordMatchesARegularFileAlone) {
  load({record_of("a", 5, 7)}, 1);
  EXPECT_TRUE(find("a", present(5, 7)).matching);
  EXPECT_FALSE(find("a", present(5, 8)).matching);
  EXPECT_FALSE(find("a", present(6, 7)).matching);
  EXPECT_FALSE(find("a", present(5, 7, io::FileType::kSymlink)).matching);
  EXPECT_TRUE(find("a", present(5, 7, io::FileType::kSymlink)).expected);
}

// A run was killed between the record and the rename, or behind the rename.
TEST_F(ReceiptIndexTest, AnUnsureRecordCountsWhereItDescribesWhatIsThere) {
  load({record_of("a", 1, 1), record_of("a", 2, 2), record_of("new", 3, 3)}, 1);
  EXPECT_EQ(find("a", present(1, 1)).matching, record_of("a", 1, 1));
  EXPECT_EQ(find("a", present(2, 2)).matching, record_of("a", 2, 2));
  EXPECT_EQ(find("a", present(9, 9)).expected, record_of("a", 1, 1));
  EXPECT_EQ(find("new", present(3, 3)).matching, record_of("new", 3, 3));
  EXPECT_FALSE(find("new", present(9, 9)).expected);
  EXPECT_FALSE(find("new", std::nullopt).expected);
}

TEST_F(ReceiptIndexTest, OfTwoUnsureRecordsThatFitTheLaterCounts) {
  FileRecord other = record_of("a", 2, 2);
  other.digest = testing::digest_of("other contents of that size and time");
  load({record_of("a", 2, 2), other}, 0);
  EXPECT_EQ(find("a", present(2, 2)).matching, other);
}

TEST_F(ReceiptIndexTest, WhatIsGoneIsNotExpected) {
  load({record_of("a", 1, 1), GoneRecord{"a"}, record_of("b", 1, 1), GoneRecord{"b"}}, 3);
  EXPECT_FALSE(find("a", std::nullopt).expected);
  EXPECT_FALSE(find("a", present(1, 1)).matching);
  // An unsure one: only if it has happened.
  EXPECT_FALSE(find("b", std::nullopt).expected);
  EXPECT_FALSE(find("b", present(1, 1, io::FileType::kDirectory)).expected);
  EXPECT_TRUE(find("b", present(1, 1)).matching);
  EXPECT_TRUE(find("b", present(2, 2)).expected);
}

TEST_F(ReceiptIndexTest, UnseenAreTheExpectedOnesThatWereNotMarked) {
  load({record_of("a"), record_of("b"), record_of("gone"), GoneRecord{"gone"}, record_of("unsure")},
       4);
  index_->mark_seen(path_hash("a"));
  std::vector<FileRecord> unseen;
  const auto end = index_->next_unseen(0, 100, unseen);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(*end, index_->slots());
  EXPECT_EQ(unseen, std::vector<FileRecord>{record_of("b")});
}

TEST_F(ReceiptIndexTest, UnseenOnesComeInPortions) {
  std::vector<Record> records;
  for (int i = 0; i < 500; ++i) records.emplace_back(record_of("f" + std::to_string(i)));
  load(records, records.size());
  std::set<std::string> paths;
  for (std::size_t at = 0; at < index_->slots();) {
    std::vector<FileRecord> unseen;
    const auto next = index_->next_unseen(at, 7, unseen);
    ASSERT_TRUE(next.ok());
    EXPECT_LE(unseen.size(), 7u);
    for (const FileRecord& file : unseen) EXPECT_TRUE(paths.insert(file.path).second);
    at = *next;
  }
  EXPECT_EQ(paths.size(), 500u);
}

TEST_F(ReceiptIndexTest, ALongReceiptIsTakenInParts) {
  std::vector<Record> records;
  for (int i = 0; i < 10'000; ++i) records.emplace_back(record_of("f" + std::to_string(i)));
  file_ = receipt_of(log_of(records));
  reader_.emplace(reader_of(file_));
  const LogSummary summary = *reader_->summarize();
  index_.emplace(*reader_, summary, kSlots);
  ASSERT_GE(index_->parts(), 10'000u / kSlots);
  std::multiset<std::string> found;
  for (std::uint64_t part = 0; part < index_->parts(); ++part) {
    ASSERT_TRUE(index_->load(part, summary.end).ok());
    for (int i = 0; i < 10'000; ++i) {
      const std::string path = "f" + std::to_string(i);
      if (!index_->is_of_part(path_hash(path))) continue;
      EXPECT_TRUE(find(path, present(5, 7)).matching) << path;
      found.insert(path);
    }
  }
  EXPECT_EQ(found.size(), 10'000u);
}

}  // namespace
}  // namespace fgsync::receipt
