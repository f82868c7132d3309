#include "journal/journal_format.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/limits.h"
#include "journal/record_samples.h"

namespace fgsync::journal {
namespace {

constexpr std::uint64_t kOffset = 12345;

std::vector<std::byte> encoded(const Record& record, const Header& header = sample_header(),
                               std::uint64_t offset = kOffset) {
  std::vector<std::byte> bytes;
  encode(record, header, offset, bytes);
  return bytes;
}

Result<Record> decoded(std::span<const std::byte> bytes) {
  return decode_record(bytes, sample_header(), kOffset);
}

TEST(JournalHeader, SurvivesTheRoundTrip) {
  const auto bytes = encode(sample_header());
  ASSERT_EQ(bytes.size(), kHeaderBytes);
  const auto header = decode_header(bytes);
  ASSERT_TRUE(header.ok()) << header.status().message();
  EXPECT_EQ(header->transfer, sample_header().transfer);
  EXPECT_EQ(header->salt, sample_header().salt);
}

TEST(JournalHeader, EveryDamagedByteIsNoticed) {
  const auto whole = encode(sample_header());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto bytes = whole;
    bytes[i] ^= std::byte{0x40};
    EXPECT_FALSE(decode_header(bytes).ok()) << i;
  }
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(decode_header(std::span(whole).first(length)).ok()) << length;
  }
}

TEST(JournalHeader, ANewerFormatIsNamed) {
  auto bytes = encode(sample_header());
  bytes[8] = std::byte{2};
  const auto header = decode_header(bytes);
  ASSERT_FALSE(header.ok());
  EXPECT_EQ(header.status().code(), ErrorCode::kUnsupported);
  EXPECT_NE(header.status().message().find("format 2"), std::string::npos);
}

TEST(JournalRecord, BeginSurvivesTheRoundTrip) {
  const auto record = decoded(encoded(sample_begin()));
  ASSERT_TRUE(record.ok()) << record.status().message();
  const auto* begin = std::get_if<Begin>(&*record);
  ASSERT_NE(begin, nullptr);
  EXPECT_EQ(begin->number, 7u);
  EXPECT_EQ(begin->version.size, 10'485'761u);
  EXPECT_EQ(begin->version.mtime, (io::FileTime{-5, 999'999'999}));
  EXPECT_EQ(begin->version.ctime, (io::FileTime{1'700'000'000, 1}));
  EXPECT_EQ(begin->version.inode, 0x123456789abcdef0u);
  EXPECT_EQ(begin->version.chunk_bytes, 1u << 20);
  EXPECT_EQ(begin->version.chunks(), 11u);
  EXPECT_EQ(begin->host, sample_begin().host);
  EXPECT_EQ(begin->staged_inode, 4242u);
  EXPECT_EQ(begin->path, "below/model-00001.safetensors\xff");
}

TEST(JournalRecord, ChunksAndDoneSurviveTheRoundTrip) {
  const auto chunks_record = decoded(encoded(sample_records()[1]));
  ASSERT_TRUE(chunks_record.ok());
  const auto* chunks = std::get_if<Chunks>(&*chunks_record);
  ASSERT_NE(chunks, nullptr);
  EXPECT_EQ(chunks->number, 7u);
  EXPECT_EQ(chunks->first, 3u);
  EXPECT_EQ(chunks->checksums, std::get<Chunks>(sample_records()[1]).checksums);
  const auto done = decoded(encoded(Done{9}));
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(std::get<Done>(*done).number, 9u);
}

TEST(JournalRecord, EveryDamagedByteAndEveryCutIsNoticed) {
  for (const Record& record : sample_records()) {
    const auto whole = encoded(record);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      auto bytes = whole;
      bytes[i] ^= std::byte{1};
      EXPECT_FALSE(decoded(bytes).ok()) << record.index() << " " << i;
    }
    for (std::size_t length = 0; length < whole.size(); ++length) {
      EXPECT_FALSE(decoded(std::span(whole).first(length)).ok()) << record.index();
    }
  }
}

// Blocks of an older journal may show up in a newer one after a power cut.
TEST(JournalRecord, ARecordOfAnotherPlaceOrJournalIsRefused) {
  EXPECT_FALSE(decoded(encoded(Done{9}, sample_header(), kOffset + 1)).ok());
  Header other = sample_header();
  other.salt[0] = std::byte{0};
  EXPECT_FALSE(decoded(encoded(Done{9}, other)).ok());
}

TEST(JournalRecord, ValuesOutOfBoundsAreRefused) {
  const auto with = [](const std::function<void(Begin&)>& change) {
    Begin begin = sample_begin();
    change(begin);
    return decoded(encoded(begin)).ok();
  };
  EXPECT_TRUE(with([](Begin&) {}));
  EXPECT_FALSE(with([](Begin& b) { b.version.size = 0; }));
  EXPECT_FALSE(with([](Begin& b) { b.version.size = std::uint64_t{1} << 63; }));
  EXPECT_FALSE(with([](Begin& b) { b.version.mtime.nanoseconds = 1'000'000'000; }));
  EXPECT_FALSE(with([](Begin& b) { b.version.ctime.nanoseconds = 1'000'000'000; }));
  EXPECT_FALSE(with([](Begin& b) { b.version.chunk_bytes = 0; }));
  EXPECT_FALSE(with([](Begin& b) { b.version.chunk_bytes = limits::kChunkBytesMin - 1; }));
  EXPECT_FALSE(with([](Begin& b) { b.version.chunk_bytes = limits::kChunkBytesMax + 1; }));
  EXPECT_FALSE(with([](Begin& b) { b.version.size = limits::kFileChunksMax * (1u << 20) + 1; }));
  EXPECT_FALSE(with([](Begin& b) { b.path = std::string(); }));
  EXPECT_FALSE(
      with([](Begin& b) { b.path = std::string(limits::kPathArgumentBytesMax + 1, 'x'); }));
  EXPECT_FALSE(decoded(encoded(Chunks{7, 3, {}})).ok());
  EXPECT_FALSE(decoded(encoded(Chunks{7, limits::kFileChunksMax, {wire::Checksum()}})).ok());
}

}  // namespace
}  // namespace fgsync::journal
