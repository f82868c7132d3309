#include "receipt/receipt_reader.h"

#include "receipt/receipt_fixture.h"

namespace fgsync::receipt {
namespace {

using testing::record_of;
using ReceiptReaderTest = testing::ReceiptFixture;

std::vector<Record> many_records(int count) {
  std::vector<Record> records;
  for (int i = 0; i < count; ++i) records.emplace_back(record_of("d/f" + std::to_string(i)));
  return records;
}

TEST_F(ReceiptReaderTest, RecordsComeInTheirOrderOverManyBlocks) {
  const std::vector<Record> records = many_records(40'000);
  const auto log = log_of(records);
  ASSERT_GT(log.size(), 17 * kBlockBytes);  // more than two readings
  const io::FileHandle file = receipt_of(log);
  EXPECT_EQ(records_of(reader_of(file)), records);
}

TEST_F(ReceiptReaderTest, ARecordIsFoundByItsOffsetHoweverLong) {
  const std::vector<Record> records = {record_of("short"), record_of(std::string(3000, 'l')),
                                       record_of(std::string(kPathBytesMax, 'x')),
                                       record_of("last")};
  const io::FileHandle file = receipt_of(log_of(records));
  const ReceiptReader reader = reader_of(file);
  std::vector<Record> found;
  ASSERT_TRUE(reader
                  .for_each([&](const PlacedRecord& placed) {
                    auto record = reader.at(placed.offset);
                    ASSERT_TRUE(record.ok()) << record.status().message();
                    found.push_back(*record);
                  })
                  .ok());
  EXPECT_EQ(found, records);
  EXPECT_FALSE(reader.at(kHeaderBytes + 1).ok());
  EXPECT_FALSE(reader.at(std::uint64_t{1} << 40).ok());
}

TEST_F(ReceiptReaderTest, SummaryKnowsWhatIsSettled) {
  std::vector<Record> records = {record_of("a"), record_of("b"), SettledRecord{2, 2}};
  const std::size_t settled_end = log_of(records).size();
  records.emplace_back(GoneRecord{"a"});
  const auto log = log_of(records);
  const io::FileHandle file = receipt_of(log);
  const auto summary = reader_of(file).summarize();
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->records, 3u);
  EXPECT_EQ(summary->unsettled, 1u);
  EXPECT_EQ(summary->settled_end, settled_end);
  EXPECT_EQ(summary->live, 2u);
  EXPECT_EQ(summary->end, log.size());
  EXPECT_FALSE(summary->damaged);
}

TEST_F(ReceiptReaderTest, TornTailIsNoDamage) {
  std::vector<Record> records = {record_of("a"), SettledRecord{1, 1}};
  const std::size_t end = log_of(records).size();
  records.emplace_back(record_of("b"));
  const auto whole = log_of(records);
  for (std::size_t length = end + 1; length < whole.size(); ++length) {
    const io::FileHandle file = receipt_of({whole.begin(), whole.begin() + std::ptrdiff_t(length)});
    const auto summary = reader_of(file).summarize();
    ASSERT_TRUE(summary.ok());
    EXPECT_EQ(summary->end, end);
    EXPECT_EQ(summary->records, 1u);
    EXPECT_FALSE(summary->damaged);
  }
}

// What a power cut leaves of a tail that was not synced: any of its pages, the others as zeros.
TEST_F(ReceiptReaderTest, RecordsBehindAHoleInTheTailAreFound) {
  std::vector<Record> records = many_records(6000);
  auto log = log_of(records);
  std::fill_n(log.begin() + kBlockBytes + 4096, 4096, std::byte{0});
  const io::FileHandle file = receipt_of(log);
  const auto summary = reader_of(file).summarize();
  ASSERT_TRUE(summary.ok());
  EXPECT_FALSE(summary->damaged);
  EXPECT_EQ(summary->end, log.size());
  EXPECT_LT(summary->records, 6000u);
  EXPECT_EQ(records_of(reader_of(file)).back(), records.back());
}

TEST_F(ReceiptReaderTest, DamageCostsTheRestOfItsBlockAndIsNoticed) {
  std::vector<Record> records = many_records(6000);
  records.emplace_back(SettledRecord{6000, 6000});
  const auto good = log_of(records);
  ASSERT_FALSE(reader_of(receipt_of(good)).summarize()->damaged);
  for (const std::size_t at : {kHeaderBytes + 4, kBlockBytes + 9, 2 * kBlockBytes - 2000,
                               good.size() - kSettledRecordBytes - 100}) {
    auto log = good;
    log[at] ^= std::byte{1};
    const io::FileHandle file = receipt_of(log);
    const auto summary = reader_of(file).summarize();
    ASSERT_TRUE(summary.ok());
    EXPECT_TRUE(summary->damaged);
    EXPECT_LT(summary->records, 6000u);
    EXPECT_GE(summary->records, 6000u - kBlockBytes / 68);
  }
}

TEST_F(ReceiptReaderTest, DamageOfAReceiptOfOneBlockIsNoticed) {
  const auto good = log_of({record_of("a"), record_of("b"), SettledRecord{2, 2}});
  for (std::size_t at = kHeaderBytes; at < good.size() - kSettledRecordBytes; ++at) {
    auto log = good;
    log[at] ^= std::byte{0x10};
    const io::FileHandle file = receipt_of(log);
    const auto summary = reader_of(file).summarize();
    ASSERT_TRUE(summary.ok());
    EXPECT_TRUE(summary->damaged) << at;
    EXPECT_EQ(summary->settled_end, log.size());
    EXPECT_EQ(summary->end, kBlockBytes);  // behind damage nothing would be found in this block
  }
}

TEST_F(ReceiptReaderTest, ABlockOfZerosIsNoticedByTheCount) {
  std::vector<Record> records = many_records(5000);
  records.emplace_back(SettledRecord{5000, 5000});
  auto log = log_of(records);
  std::fill_n(log.begin() + kBlockBytes, kBlockBytes, std::byte{0});
  const io::FileHandle file = receipt_of(log);
  EXPECT_TRUE(reader_of(file).summarize()->damaged);
}

TEST_F(ReceiptReaderTest, ReceiptsThatCannotBeReadAreToldApart) {
  const auto code_of = [&](const std::vector<std::byte>& bytes) {
    const io::FileHandle file = receipt_of(bytes);
    const auto reader = ReceiptReader::open(*files, file);
    return reader.ok() ? ErrorCode::kOk : reader.status().code();
  };
  EXPECT_EQ(code_of({}), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(std::vector<std::byte>(5000)), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(std::vector<std::byte>(5000, std::byte{'x'})), ErrorCode::kIoError);
  EXPECT_EQ(code_of(std::vector<std::byte>(10, std::byte{'x'})), ErrorCode::kIoError);
  auto newer = log_of({record_of("a")});
  newer[8] = std::byte{9};
  EXPECT_EQ(code_of(newer), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of(log_of({record_of("a")})), ErrorCode::kOk);
}

}  // namespace
}  // namespace fgsync::receipt
