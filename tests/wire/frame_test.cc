#include "wire/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "base/limits.h"

namespace fgsync::wire {
namespace {

using HeaderBytes = std::array<std::byte, kFrameHeaderBytes>;

bool is_refused(const HeaderBytes& bytes) {
  const auto header = decode_frame_header(bytes);
  return !header.ok() && header.status().code() == ErrorCode::kProtocolError;
}

HeaderBytes with_byte(const FrameHeader& header, std::size_t index, int value) {
  HeaderBytes bytes = encode(header);
  bytes[index] = std::byte(value);
  return bytes;
}

void expect_round_trip(const FrameHeader& header) {
  const auto decoded = decode_frame_header(encode(header));
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ(decoded->type, header.type);
  EXPECT_EQ(decoded->count, header.count);
  EXPECT_EQ(decoded->entry, header.entry);
  EXPECT_EQ(decoded->offset, header.offset);
}

const FrameHeader kChunkHeader{FrameType::kChunk, 0, 0x1122334455667788, std::uint64_t{3} << 40};
const FrameHeader kPackHeader{FrameType::kPack, limits::kPackEntriesMax, 0, 0};
const FrameHeader kEndHeader{FrameType::kStreamEnd, 0, 0, 0};

TEST(FrameHeader, SurvivesTheRoundTrip) {
  expect_round_trip(kChunkHeader);
  expect_round_trip(kPackHeader);
  expect_round_trip(kEndHeader);
}

TEST(FrameHeader, LayoutIsTheSpecifiedOne) {
  HeaderBytes expected{};
  expected[0] = std::byte{1};
  for (std::size_t i = 0; i < 8; ++i) expected[8 + i] = std::byte(0x88 - 0x11 * i);
  expected[16 + 5] = std::byte{3};
  EXPECT_EQ(encode(kChunkHeader), expected);
  HeaderBytes pack{};
  pack[0] = std::byte{2};
  pack[5] = std::byte{4};  // 1024
  EXPECT_EQ(encode(kPackHeader), pack);
}

TEST(FrameHeader, UnknownTypeIsRefused) {
  EXPECT_TRUE(is_refused(with_byte(kEndHeader, 0, 0)));
  EXPECT_TRUE(is_refused(with_byte(kEndHeader, 0, 4)));
  EXPECT_TRUE(is_refused(with_byte(kEndHeader, 0, 255)));
}

TEST(FrameHeader, CountOutOfBoundsIsRefused) {
  FrameHeader header = kPackHeader;
  header.count = limits::kPackEntriesMax + 1;
  EXPECT_TRUE(is_refused(encode(header)));
  header.count = 0;
  EXPECT_TRUE(is_refused(encode(header)));
  header = kChunkHeader;
  header.count = 1;
  EXPECT_TRUE(is_refused(encode(header)));
  header = kEndHeader;
  header.count = 1;
  EXPECT_TRUE(is_refused(encode(header)));
}

TEST(FrameHeader, OffsetThatNoFileCanHaveIsRefused) {
  FrameHeader header = kChunkHeader;
  header.offset = 0x7fffffffffffffff - limits::kChunkBytesMax;
  expect_round_trip(header);
  ++header.offset;
  EXPECT_TRUE(is_refused(encode(header)));
  header.offset = 0xffffffffffffffff;
  EXPECT_TRUE(is_refused(encode(header)));
}

TEST(FrameHeader, FieldsThatMustBeZeroAreChecked) {
  for (FrameHeader header : {kPackHeader, kEndHeader}) {
    header.entry = 1;
    EXPECT_TRUE(is_refused(encode(header)));
    header.entry = 0;
    header.offset = 1;
    EXPECT_TRUE(is_refused(encode(header)));
  }
  for (const std::size_t spare : {1u, 2u, 3u, 24u, 25u, 26u, 27u, 28u, 29u, 30u, 31u}) {
    EXPECT_TRUE(is_refused(with_byte(kChunkHeader, spare, 0x80))) << spare;
  }
}

TEST(ChunkPayload, IsSplitIntoBytesAndChecksum) {
  std::vector<std::byte> payload(100 + kChunkTrailerBytes, std::byte{7});
  payload[100] = std::byte{1};
  payload.back() = std::byte{2};
  const auto chunk = decode_chunk_payload(payload);
  ASSERT_TRUE(chunk.ok());
  EXPECT_EQ(chunk->bytes.data(), payload.data());
  EXPECT_EQ(chunk->bytes.size(), 100u);
  EXPECT_EQ(chunk->bound_checksum.bytes.front(), std::byte{1});
  EXPECT_EQ(chunk->bound_checksum.bytes.back(), std::byte{2});
}

TEST(BindChecksum, TellsEveryPlaceApartAndIsItsOwnInverse) {
  const Checksum checksum = checksum_of(std::as_bytes(std::span("contents")));
  const Checksum bound = bind_checksum(checksum, 7, 65'536);
  EXPECT_NE(bound, checksum);
  EXPECT_EQ(bind_checksum(bound, 7, 65'536), checksum);
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_NE(bind_checksum(bound, 7 ^ (std::uint64_t{1} << bit), 65'536), checksum);
    EXPECT_NE(bind_checksum(bound, 7, 65'536 ^ (std::uint64_t{1} << bit)), checksum);
  }
}

TEST(ChunkPayload, WithoutBytesIsRefused) {
  const std::vector<std::byte> payload(kChunkTrailerBytes);
  for (std::size_t length = 0; length <= payload.size(); ++length) {
    const auto chunk = decode_chunk_payload(std::span(payload).first(length));
    ASSERT_FALSE(chunk.ok()) << length;
    EXPECT_EQ(chunk.status().code(), ErrorCode::kProtocolError);
  }
}

void append(std::vector<std::byte>& pack, const PackedEntry& entry) {
  std::array<std::byte, kPackedHeaderBytes> header;
  header.fill(std::byte{0xee});
  encode_packed_header(entry, header);
  pack.insert(pack.end(), header.begin(), header.end());
  pack.insert(pack.end(), entry.bytes.begin(), entry.bytes.end());
}

PackedEntry packed(std::uint64_t id, std::string_view contents) {
  const auto bytes = std::as_bytes(std::span(contents));
  return PackedEntry{id, PackedStatus::kComplete, checksum_of(bytes), bytes};
}

// Two files, an empty one and a withdrawn one.
std::vector<std::byte> sample_pack() {
  std::vector<std::byte> pack;
  append(pack, packed(5, "first"));
  append(pack, packed(6, ""));
  append(pack, PackedEntry{0xffffffffffffffff, PackedStatus::kWithdrawn, {}, {}});
  append(pack, packed(8, "second"));
  return pack;
}
constexpr std::uint32_t kSamplePackCount = 4;

// Whether every entry of the pack can be read.
Status read_all(std::span<const std::byte> payload, std::uint32_t count) {
  PackReader reader(payload, count);
  while (true) {
    const auto entry = reader.next();
    if (!entry.ok()) return entry.status();
    if (!entry->has_value()) return Status();
  }
}

TEST(PackReader, GivesTheEntriesInOrder) {
  const auto pack = sample_pack();
  PackReader reader(pack, kSamplePackCount);
  for (const PackedEntry& expected : {packed(5, "first"), packed(6, "")}) {
    const auto entry = reader.next();
    ASSERT_TRUE(entry.ok());
    ASSERT_TRUE(entry->has_value());
    EXPECT_EQ((*entry)->entry, expected.entry);
    EXPECT_EQ((*entry)->status, PackedStatus::kComplete);
    EXPECT_EQ((*entry)->checksum, expected.checksum);
    EXPECT_TRUE(std::ranges::equal((*entry)->bytes, expected.bytes));
  }
  const auto withdrawn = reader.next();
  ASSERT_TRUE(withdrawn.ok());
  EXPECT_EQ((*withdrawn)->entry, 0xffffffffffffffff);
  EXPECT_EQ((*withdrawn)->status, PackedStatus::kWithdrawn);
  EXPECT_TRUE((*withdrawn)->bytes.empty());
  const auto last = reader.next();
  ASSERT_TRUE(last.ok());
  EXPECT_EQ((*last)->entry, 8u);
  for (int i = 0; i < 2; ++i) {
    const auto end = reader.next();
    ASSERT_TRUE(end.ok());
    EXPECT_FALSE(end->has_value());
  }
}

TEST(PackReader, LayoutOfAHeaderIsTheSpecifiedOne) {
  std::vector<std::byte> pack;
  append(pack, packed(0x0102, "abc"));
  ASSERT_EQ(pack.size(), 35u);
  std::array<std::byte, 16> front{};
  front[0] = std::byte{2};
  front[1] = std::byte{1};
  front[8] = std::byte{1};
  front[12] = std::byte{3};
  EXPECT_TRUE(std::ranges::equal(std::span(pack).first(16), front));
  const Checksum bound = bind_checksum(packed(0x0102, "abc").checksum, 0x0102, 0);
  EXPECT_TRUE(std::ranges::equal(std::span(pack).subspan(16, 16), bound.bytes));
}

TEST(PackReader, AWithdrawnHeaderHasNeitherLengthNorChecksum) {
  PackedEntry entry = packed(3, "abc");
  entry.status = PackedStatus::kWithdrawn;
  std::array<std::byte, kPackedHeaderBytes> header;
  header.fill(std::byte{0xee});
  encode_packed_header(entry, header);
  std::array<std::byte, kPackedHeaderBytes> expected{};
  expected[0] = std::byte{3};
  expected[8] = std::byte{2};
  EXPECT_EQ(header, expected);
}

TEST(PackReader, TruncatedPackIsRefusedAtEveryByte) {
  const auto pack = sample_pack();
  ASSERT_TRUE(read_all(pack, kSamplePackCount).ok());
  for (std::size_t length = 0; length < pack.size(); ++length) {
    const Status status = read_all(std::span(pack).first(length), kSamplePackCount);
    EXPECT_EQ(status.code(), ErrorCode::kProtocolError) << length;
  }
}

TEST(PackReader, LeftoversAndMissingEntriesAreRefused) {
  const auto pack = sample_pack();
  EXPECT_EQ(read_all(pack, kSamplePackCount - 1).code(), ErrorCode::kProtocolError);
  EXPECT_EQ(read_all(pack, kSamplePackCount + 1).code(), ErrorCode::kProtocolError);
  EXPECT_EQ(read_all({}, 1).code(), ErrorCode::kProtocolError);
  EXPECT_TRUE(read_all({}, 0).ok());
}

TEST(PackReader, StaysAtAnEntryThatItRefused) {
  const auto pack = sample_pack();
  PackReader reader{std::span(pack).first(10), 1};
  EXPECT_FALSE(reader.next().ok());
  EXPECT_FALSE(reader.next().ok());
}

TEST(PackReader, BrokenHeadersAreRefused) {
  struct Broken {
    std::size_t index;
    int value;
    const char* what;
  };
  const std::vector<std::byte> complete = [] {
    std::vector<std::byte> pack;
    append(pack, packed(5, "abcde"));
    return pack;
  }();
  for (const Broken& broken :
       {Broken{8, 0, "no status"}, Broken{8, 3, "unknown status"},
        Broken{8, 2, "withdrawn with a length"}, Broken{9, 1, "spare"}, Broken{10, 1, "spare"},
        Broken{11, 1, "spare"}, Broken{12, 6, "too long"}, Broken{12, 4, "too short"},
        Broken{15, 0xff, "huge"}}) {
    auto pack = complete;
    pack[broken.index] = std::byte(broken.value);
    EXPECT_EQ(read_all(pack, 1).code(), ErrorCode::kProtocolError) << broken.what;
  }
}

TEST(PackReader, AWithdrawnEntryWithAChecksumIsRefused) {
  std::vector<std::byte> pack;
  append(pack, PackedEntry{1, PackedStatus::kWithdrawn, {}, {}});
  EXPECT_TRUE(read_all(pack, 1).ok());
  pack[31] = std::byte{1};
  EXPECT_EQ(read_all(pack, 1).code(), ErrorCode::kProtocolError);
}

TEST(PackReader, AFileThatIsTooLargeForAPackIsRefused) {
  std::vector<std::byte> pack;
  const std::vector<std::byte> contents(limits::kPackedFileBytesMax);
  append(pack, PackedEntry{1, PackedStatus::kComplete, checksum_of(contents), contents});
  EXPECT_TRUE(read_all(pack, 1).ok());
  pack.push_back(std::byte{0});
  pack[12] = std::byte{1};
  EXPECT_EQ(read_all(pack, 1).code(), ErrorCode::kProtocolError);
}

}  // namespace
}  // namespace fgsync::wire
