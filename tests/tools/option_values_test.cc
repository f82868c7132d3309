#include "option_values.h"

#include <gtest/gtest.h>

namespace fgsync::tools {
namespace {

using std::chrono::milliseconds;

TEST(Size, TakesBothFamiliesOfUnits) {
  const std::pair<const char*, std::uint64_t> table[] = {
      {"0", 0},
      {"4096", 4096},
      {"64K", 65'536},
      {"4M", 4'194'304},
      {"2G", 2'147'483'648},
      {"1T", 1'099'511'627'776},
      {"1.5k", 1536},
      {"4MiB", 4'194'304},
      {"10KB", 10'000},
      {"10MB", 10'000'000},
      {"3GB", 3'000'000'000},
      {"1TB", 1'000'000'000'000},
      {"7B", 7},
  };
  for (const auto& [text, bytes] : table) {
    const Result<std::uint64_t> size = parse_size(text);
    ASSERT_TRUE(size.ok()) << text;
    EXPECT_EQ(*size, bytes) << text;
  }
}

TEST(Size, AnythingElseIsRefused) {
  for (const char* text : {"", "x", "-1", "+1", ".5M", "1..5M", "4 M", "4Q", "4MBB", "10Gbit",
                           "1e3", "99999999T", "nan", "inf", "0x10", "K"}) {
    EXPECT_FALSE(parse_size(text).ok()) << text;
  }
}

TEST(Rate, TakesBytesAndBits) {
  const std::pair<const char*, std::uint64_t> table[] = {
      {"50M", 52'428'800},       {"100MB", 100'000'000},
      {"100MB/s", 100'000'000},  {"8bit", 1},
      {"80kbit", 10'000},        {"100Mbit", 12'500'000},
      {"10Gbit", 1'250'000'000}, {"10Gbit/s", 1'250'000'000},
      {"2.5Gbit", 312'500'000},
  };
  for (const auto& [text, bytes] : table) {
    const Result<std::uint64_t> rate = parse_rate(text);
    ASSERT_TRUE(rate.ok()) << text;
    EXPECT_EQ(*rate, bytes) << text;
  }
  for (const char* text : {"", "fast", "/s", "10Gbits", "10 Gbit"}) {
    EXPECT_FALSE(parse_rate(text).ok()) << text;
  }
}

TEST(Duration, TakesUnitsAndBareSeconds) {
  const std::pair<const char*, milliseconds> table[] = {
      {"30", milliseconds(30'000)},    {"30s", milliseconds(30'000)},
      {"500ms", milliseconds(500)},    {"5m", milliseconds(300'000)},
      {"2h", milliseconds(7'200'000)}, {"1d", milliseconds(86'400'000)},
      {"0", milliseconds(0)},
  };
  for (const auto& [text, expected] : table) {
    const Result<milliseconds> duration = parse_duration(text);
    ASSERT_TRUE(duration.ok()) << text;
    EXPECT_EQ(*duration, expected) << text;
  }
  for (const char* text :
       {"", "s", "5x", "-5", "1.5h", "5 m", "99999999999999999999", "99999999999d"}) {
    EXPECT_FALSE(parse_duration(text).ok()) << text;
  }
}

TEST(Ports, AreOneOrARange) {
  const Result<PortRange> one = parse_ports("8730");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->low, 8730);
  EXPECT_EQ(one->high, 8730);
  const Result<PortRange> range = parse_ports("8730-8739");
  ASSERT_TRUE(range.ok());
  EXPECT_EQ(range->low, 8730);
  EXPECT_EQ(range->high, 8739);
  for (const char* text : {"", "0", "65536", "9-8", "1-", "-1", "1-2-3", "http", "1-70000"}) {
    EXPECT_FALSE(parse_ports(text).ok()) << text;
  }
}

TEST(Words, AreSplitAsAShellDoes) {
  const Result<std::vector<std::string>> words =
      split_words("ssh  -p 22 -o 'User Known=x y' \"a\\\"b\" c\\ d ''");
  ASSERT_TRUE(words.ok());
  EXPECT_EQ(*words, (std::vector<std::string>{"ssh", "-p", "22", "-o", "User Known=x y", "a\"b",
                                              "c d", ""}));
  EXPECT_FALSE(split_words("ssh 'open").ok());
  EXPECT_FALSE(split_words("ssh \\").ok());
}

TEST(Choices, AreTheWordsOfTheManual) {
  EXPECT_EQ(*parse_cipher("chacha20"), Cipher::kChaCha20Poly1305);
  EXPECT_EQ(*parse_cipher("none"), Cipher::kNone);
  EXPECT_EQ(*parse_io_engine("posix"), IoEngine::kPosix);
  EXPECT_EQ(*parse_direct_io("never"), DirectIo::kNever);
  EXPECT_EQ(*parse_transport("tcp"), Transport::kTcp);
  EXPECT_EQ(*parse_durability("none"), Durability::kNone);
  EXPECT_EQ(*parse_durability("full"), Durability::kFull);
  EXPECT_TRUE(*parse_verify("readback"));
  EXPECT_FALSE(*parse_verify("wire"));
  EXPECT_FALSE(parse_cipher("rot13").ok());
  EXPECT_FALSE(parse_switch("maybe").ok());
  EXPECT_TRUE(*parse_switch("Yes"));
  EXPECT_FALSE(*parse_switch("off"));
}

}  // namespace
}  // namespace fgsync::tools
