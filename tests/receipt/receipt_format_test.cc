#include "receipt/receipt_format.h"

#include <cstring>

#include <xxhash.h>

#include "gtest/gtest.h"
#include "receipt/receipt_fixture.h"

namespace fgsync::receipt {
namespace {

using testing::record_of;

constexpr Header kHeader = {.salt = 0x1122334455667788};

std::vector<std::byte> encoded(const Record& record, std::uint64_t offset = kHeaderBytes) {
  std::vector<std::byte> bytes;
  encode(record, kHeader, offset, bytes);
  return bytes;
}

// As the specification has it, by the library itself.
std::vector<std::byte> canonical(const void* bytes, std::size_t length) {
  XXH128_canonical_t form;
  XXH128_canonicalFromHash(&form, XXH3_128bits(bytes, length));
  std::vector<std::byte> checksum(sizeof form.digest);
  std::memcpy(checksum.data(), form.digest, checksum.size());
  return checksum;
}

TEST(ReceiptFormat, FileRecordIsAsSpecified) {
  const FileRecord file = {.path = "a/b",
                           .size = 0x0102,
                           .mtime = {-2, 3},
                           .chunk_bytes = 0x400000,
                           .digest = wire::checksum_of({})};
  const std::vector<std::byte> bytes = encoded(file, 4096);

  std::string body("\x01\x02\x01\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\x03\0\0\0\0\0\x40\0",
                   25);
  const auto digest = canonical("", 0);
  body.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  body.append("\x03\0\0\0a/b", 7);
  std::string expected("\x30\0\0\0", 4);
  expected += body;
  auto checksum = canonical(expected.data(), expected.size());
  const auto place = canonical("\x88\x77\x66\x55\x44\x33\x22\x11\0\x10\0\0\0\0\0\0", 16);
  for (std::size_t i = 0; i < checksum.size(); ++i) checksum[i] ^= place[i];
  expected.append(reinterpret_cast<const char*>(checksum.data()), checksum.size());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), expected);
}

TEST(ReceiptFormat, RecordsComeBackAsTheyWere) {
  const std::vector<Record> records = {
      record_of("plain"),
      record_of("new\nline/\xff\xfe not UTF-8/\x01"),
      record_of("empty", 0),
      FileRecord{.path = "old",
                 .size = (std::uint64_t{1} << 63) - 1,
                 .mtime = {-9'000'000'000, 999'999'999},
                 .chunk_bytes = 64 << 10,
                 .digest = {}},
      record_of(std::string(kPathBytesMax, 'p')),
      GoneRecord{"gone/for good"},
      SettledRecord{5, 4},
  };
  for (const Record& record : records) {
    const auto bytes = encoded(record);
    const auto decoded = decode_record(bytes, kHeader, kHeaderBytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status().message();
    EXPECT_EQ(*decoded, record);
  }
}

TEST(ReceiptFormat, RecordWithAnyBitFlippedIsRefused) {
  for (const Record& record :
       {Record(record_of("a/file")), Record(GoneRecord{"a/file"}), Record(SettledRecord{7, 7})}) {
    auto bytes = encoded(record);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      bytes[bit / 8] ^= std::byte(1 << bit % 8);
      EXPECT_FALSE(decode_record(bytes, kHeader, kHeaderBytes).ok()) << bit;
      bytes[bit / 8] ^= std::byte(1 << bit % 8);
    }
  }
}

TEST(ReceiptFormat, RecordCutAnywhereIsRefused) {
  const auto bytes = encoded(record_of("a/file"));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_record(std::span(bytes).first(length), kHeader, kHeaderBytes).ok());
  }
}

TEST(ReceiptFormat, RecordAtAnotherPlaceOrInAnotherReceiptIsRefused) {
  const auto bytes = encoded(record_of("a/file"));
  EXPECT_FALSE(decode_record(bytes, kHeader, kHeaderBytes + 1).ok());
  EXPECT_FALSE(decode_record(bytes, Header{.salt = 1}, kHeaderBytes).ok());
}

TEST(ReceiptFormat, PathsThatLeaveTheRootAreImpossible) {
  for (const std::string path : {"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/.", "../a"}) {
    EXPECT_FALSE(is_possible_path(path)) << path;
  }
  EXPECT_FALSE(is_possible_path(std::string("a\0b", 3)));
  EXPECT_FALSE(is_possible_path(std::string(kPathBytesMax + 1, 'p')));
  for (const std::string path : {"a", "a/b", "...", "..a", " ", "a\nb", "\xff"}) {
    EXPECT_TRUE(is_possible_path(path)) << path;
  }
  const auto bytes = encoded(record_of("../a"));
  EXPECT_FALSE(decode_record(bytes, kHeader, kHeaderBytes).ok());
}

TEST(ReceiptFormat, FieldsOutOfBoundsAreRefused) {
  FileRecord too_large = record_of("f");
  too_large.size = std::uint64_t{1} << 63;
  FileRecord no_time = record_of("f");
  no_time.mtime.nanoseconds = 1'000'000'000;
  FileRecord small_chunk = record_of("f");
  small_chunk.chunk_bytes = 4096;
  FileRecord large_chunk = record_of("f");
  large_chunk.chunk_bytes = 32 << 20;
  FileRecord odd_chunk = record_of("f");
  odd_chunk.chunk_bytes = (64 << 10) + 1;
  for (const FileRecord& record : {too_large, no_time, small_chunk, large_chunk, odd_chunk}) {
    EXPECT_FALSE(decode_record(encoded(record), kHeader, kHeaderBytes).ok());
  }
  EXPECT_FALSE(decode_record(encoded(SettledRecord{3, 4}), kHeader, kHeaderBytes).ok());
}

TEST(ReceiptFormat, NoRecordCrossesABlock) {
  std::vector<std::byte> log = encode(kHeader);
  for (int i = 0; i < 5000; ++i) {
    const Record record = record_of(std::string(std::size_t(1 + i % 300), 'n'));
    const std::size_t before = log.size();
    const std::size_t appended = encode(record, kHeader, before, log);
    EXPECT_EQ(log.size(), before + appended);
    const std::size_t begin = log.size() - encoded(record).size();
    EXPECT_EQ(begin / kBlockBytes, (log.size() - 1) / kBlockBytes);
    for (std::size_t at = before; at < begin; ++at) EXPECT_EQ(log[at], std::byte{0});
    EXPECT_TRUE(decode_record(std::span(log).subspan(begin), kHeader, begin).ok());
  }
  EXPECT_GT(log.size(), 4 * kBlockBytes);
}

TEST(ReceiptFormat, HeaderComesBackAndAnyFlippedBitIsRefused) {
  auto bytes = encode(kHeader);
  ASSERT_EQ(bytes.size(), kHeaderBytes);
  ASSERT_TRUE(decode_header(bytes).ok());
  EXPECT_EQ(decode_header(bytes)->salt, kHeader.salt);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_FALSE(decode_header(bytes).ok()) << bit;
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
  }
}

TEST(ReceiptFormat, NewerFormatIsNamed) {
  auto bytes = encode(kHeader);
  bytes[8] = std::byte{2};
  const auto header = decode_header(bytes);
  ASSERT_FALSE(header.ok());
  EXPECT_EQ(header.status().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(header.status().message(), "it has format 2, which this version cannot read");
}

}  // namespace
}  // namespace fgsync::receipt
