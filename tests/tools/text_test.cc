#include "text.h"

#include <gtest/gtest.h>

#include <random>

namespace fgsync::tools {
namespace {

std::string unescape(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      bytes += static_cast<char>(std::stoi(text.substr(i + 2, 2), nullptr, 16));
      i += 3;
    } else {
      bytes += text[i];
    }
  }
  return bytes;
}

TEST(EscapeName, PlainTextStaysAsItIs) {
  for (const char* name : {"", "a b", "caf\u00e9", "\u65e5\u672c", "\U0001f600", "it's \"x\""}) {
    EXPECT_EQ(escape_name(name), name);
  }
}

TEST(EscapeName, WhatCouldSteerATerminalIsEscaped) {
  EXPECT_EQ(escape_name("a\nfile has vanished: y"), "a\\x0afile has vanished: y");
  EXPECT_EQ(escape_name("\r\t\x1b[2J"), "\\x0d\\x09\\x1b[2J");
  EXPECT_EQ(escape_name("\x1b]0;x\a"), "\\x1b]0;x\\x07");
  EXPECT_EQ(escape_name("\x7f"), "\\x7f");
  EXPECT_EQ(escape_name("\xc2\x9b"), "\\xc2\\x9b");                     // CSI as UTF-8
  EXPECT_EQ(escape_name("\x9b"), "\\x9b");                              // CSI raw
  EXPECT_EQ(escape_name("a\u202ecod.exe"), "a\\xe2\\x80\\xaecod.exe");  // right-to-left override
  EXPECT_EQ(escape_name("\u2066\u2069"), "\\xe2\\x81\\xa6\\xe2\\x81\\xa9");
  EXPECT_EQ(escape_name("a\\x0a"), "a\\x5cx0a");
}

TEST(EscapeName, WhatIsNotUtf8IsEscapedByteByByte) {
  EXPECT_EQ(escape_name("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(escape_name("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(escape_name("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(escape_name("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(escape_name("\xe6\x97"), "\\xe6\\x97");                    // cut short
  EXPECT_EQ(escape_name("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
}

TEST(EscapeName, IsReversibleAndLeavesNoControlByte) {
  std::mt19937 random(20251130);
  for (int round = 0; round < 2000; ++round) {
    std::string name(random() % 24, '\0');
    for (char& c : name) c = static_cast<char>(random() % 256);
    const std::string escaped = escape_name(name);
    EXPECT_EQ(unescape(escaped), name);
    EXPECT_TRUE(is_utf8(escaped));
    for (char c : escaped) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  }
}

TEST(EscapeMessage, LeavesBackslashesOfNamesThatAreEscapedAlready) {
  EXPECT_EQ(escape_message("the far side said: \\x1b[m\n"), "the far side said: \\x1b[m\\x0a");
}

TEST(Human, FiguresHaveTwoDigitsOrMore) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1.0 KB");
  EXPECT_EQ(human_bytes(999'499), "999 KB");
  EXPECT_EQ(human_bytes(999'500), "1.0 MB");
  EXPECT_EQ(human_bytes(3'812'345'678), "3.8 GB");
  EXPECT_EQ(human_bytes(38'123'456'789), "38 GB");
  EXPECT_EQ(human_bytes(~std::uint64_t{0}), "18 EB");
  EXPECT_EQ(human_rate(1.2e9), "1.2 GB/s");
  EXPECT_EQ(human_rate(-1), "0 B/s");
}

TEST(Human, DurationsGrowTheirUnits) {
  EXPECT_EQ(human_duration(0.04), "0.0 s");
  EXPECT_EQ(human_duration(3.14), "3.1 s");
  EXPECT_EQ(human_duration(47), "47 s");
  EXPECT_EQ(human_duration(59.7), "1m00s");
  EXPECT_EQ(human_duration(125), "2m05s");
  EXPECT_EQ(human_duration(3725), "1h02m");
}

TEST(Iso8601, IsUtcWithMilliseconds) {
  using std::chrono::milliseconds;
  // `date -u -d @1764516480` says 2025-11-30 15:28:00.
  const std::chrono::system_clock::time_point time(milliseconds(1'764'516'480'123));
  EXPECT_EQ(iso8601(time), "2025-11-30T15:28:00.123Z");
}

TEST(QuoteWords, AShellReadsTheSameWordsBack) {
  EXPECT_EQ(quote_words({"fgsync", "-n", "/a b", "h:/x", "", "it's"}),
            "fgsync -n '/a b' h:/x '' 'it'\\''s'");
}

}  // namespace
}  // namespace fgsync::tools
