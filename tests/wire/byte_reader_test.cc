#include "wire/byte_reader.h"

#include <gtest/gtest.h>

#include "wire/byte_writer.h"

namespace fgsync::wire {
namespace {

std::vector<std::byte> raw(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(std::byte(value));
  return bytes;
}

TEST(ByteWriter, NumbersAreLittleEndian) {
  ByteWriter writer;
  writer.u8(0x01);
  writer.u16(0x0203);
  writer.u32(0x04050607);
  writer.u64(0x08090a0b0c0d0e0f);
  writer.i64(-2);
  EXPECT_EQ(writer.take(),
            raw({1,    3,    2,    7,    6,    5,    4,    0xf, 0xe, 0xd, 0xc, 0xb, 0xa, 9, 8,  //
                 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
}

TEST(ByteWriter, StringsHaveTheirLengthInFrontAndTextsAreCut) {
  ByteWriter writer;
  writer.string("ab");
  writer.text("cdef", 3);
  EXPECT_EQ(writer.take(), raw({2, 0, 0, 0, 'a', 'b', 3, 0, 0, 0, 'c', 'd', 'e'}));
}

TEST(ByteReader, ReadsWhatWasWritten) {
  ByteWriter writer;
  writer.u8(0xfe);
  writer.u16(0xfedc);
  writer.u32(0xfedcba98);
  writer.u64(0xfedcba9876543210);
  writer.i64(-123456789012345);
  writer.boolean(true);
  writer.string(std::string("a\0b", 3));
  const auto bytes = writer.take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.u8(), 0xfe);
  EXPECT_EQ(reader.u16(), 0xfedc);
  EXPECT_EQ(reader.u32(), 0xfedcba98);
  EXPECT_EQ(reader.u64(), 0xfedcba9876543210);
  EXPECT_EQ(reader.i64(), -123456789012345);
  EXPECT_TRUE(reader.boolean());
  EXPECT_EQ(reader.string(3), std::string("a\0b", 3));
  EXPECT_TRUE(reader.finish("test").ok());
}

TEST(ByteReader, StaysFailedAfterReadingTooFar) {
  const auto bytes = raw({1, 2, 3});
  ByteReader reader(bytes);
  EXPECT_EQ(reader.u32(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.u8(), 0);
  EXPECT_TRUE(reader.bytes(1).empty());
  const Status status = reader.finish("thing");
  EXPECT_EQ(status.code(), ErrorCode::kProtocolError);
  EXPECT_EQ(status.message(), "malformed thing: cut short");
}

TEST(ByteReader, KeepsTheFirstReason) {
  const auto bytes = raw({2});
  ByteReader reader(bytes);
  EXPECT_FALSE(reader.boolean());
  reader.require(false, "later");
  EXPECT_EQ(reader.finish("thing").message(), "malformed thing: neither true nor false");
}

TEST(ByteReader, LeftoversAreRefused) {
  const auto bytes = raw({0, 0});
  ByteReader reader(bytes);
  EXPECT_EQ(reader.u8(), 0);
  EXPECT_EQ(reader.finish("thing").code(), ErrorCode::kProtocolError);
}

TEST(ByteReader, AStringLongerThanItsBoundIsRefusedThoughItIsThere) {
  const auto bytes = raw({3, 0, 0, 0, 'a', 'b', 'c'});
  ByteReader reader(bytes);
  EXPECT_EQ(reader.string(2), "");
  EXPECT_FALSE(reader.ok());
}

TEST(ByteReader, AStringLongerThanWhatIsThereIsRefused) {
  const auto bytes = raw({0xff, 0xff, 0xff, 0xff, 'a'});
  ByteReader reader(bytes);
  EXPECT_EQ(reader.string(std::size_t{1} << 40), "");
  EXPECT_FALSE(reader.ok());
}

TEST(ByteReader, CountsAreBoundedByTheBytesThatAreLeft) {
  const auto bytes = raw({2, 0, 0, 0, 9, 9, 9, 9, 9, 9});
  EXPECT_EQ(ByteReader(bytes).count(2, 3), 2u);
  EXPECT_EQ(ByteReader(bytes).count(2, 4), 0u);
  EXPECT_EQ(ByteReader(bytes).count(1, 1), 0u);
}

TEST(ByteReader, EnumeratorsOutsideTheirRangeAreRefused) {
  enum class Colour : std::uint8_t { kRed = 1, kBlue = 2 };
  for (const int value : {0, 3, 255}) {
    const auto bytes = raw({value});
    ByteReader reader(bytes);
    EXPECT_EQ(reader.enumerator(Colour::kRed, Colour::kBlue), Colour::kRed);
    EXPECT_FALSE(reader.ok()) << value;
  }
  const auto bytes = raw({2});
  ByteReader reader(bytes);
  EXPECT_EQ(reader.enumerator(Colour::kRed, Colour::kBlue), Colour::kBlue);
  EXPECT_TRUE(reader.ok());
}

}  // namespace
}  // namespace fgsync::wire
