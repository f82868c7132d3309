#include <gtest/gtest.h>

#include <string_view>

#include "base/limits.h"
#include "wire/start_line.h"

namespace fgsync::wire {
namespace {

using Found = StartAnswerScanner::Found;

StartAnswer sample_answer() {
  StartAnswer answer;
  answer.address = "fe80::1%ens6";
  answer.port = 41234;
  answer.choice = AddressChoice::kFacing;
  for (std::size_t i = 0; i < answer.psk.size(); ++i) answer.psk[i] = std::byte(0xc0 + i);
  for (std::size_t i = 0; i < answer.session_id.size(); ++i) {
    answer.session_id[i] = std::byte(i);
  }
  return answer;
}

const std::string kLine = encode(sample_answer());

Result<std::optional<Found>> feed(StartAnswerScanner& scanner, std::string_view bytes) {
  return scanner.feed(std::as_bytes(std::span(bytes)));
}

testing::AssertionResult is_sample(const Found& found) {
  const StartAnswer expected = sample_answer();
  if (!found.answer || found.refusal) return testing::AssertionFailure() << "no answer";
  const StartAnswer& answer = *found.answer;
  const bool same = answer.address == expected.address && answer.port == expected.port &&
                    answer.choice == expected.choice && answer.psk == expected.psk &&
                    answer.session_id == expected.session_id;
  return same ? testing::AssertionSuccess() : testing::AssertionFailure() << "another answer";
}

// Whether the sample's answer is found, and no sooner than with the last byte, when the bytes come
// in pieces.
testing::AssertionResult finds_sample(std::string_view bytes, std::size_t piece) {
  StartAnswerScanner scanner;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const auto result = feed(scanner, bytes.substr(at, piece));
    if (!result.ok()) return testing::AssertionFailure() << result.status().message();
    if (!result->has_value()) continue;
    if (at + piece < bytes.size()) return testing::AssertionFailure() << "found too early";
    return is_sample(**result);
  }
  return testing::AssertionFailure() << "not found";
}

bool finds_nothing(std::string_view bytes) {
  StartAnswerScanner scanner;
  const auto result = feed(scanner, bytes);
  return result.ok() && !result->has_value();
}

TEST(StartAnswer, IsOneLineOfPlainText) {
  EXPECT_TRUE(kLine.starts_with(
      "@fgsync-answer: kind=session address=fe80::1%25ens6 port=41234 choice=facing "
      "psk=c0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedf "
      "session=000102030405060708090a0b0c0d0e0f check="));
  EXPECT_EQ(kLine.find('\n'), kLine.size() - 1);
}

TEST(StartAnswerScanner, FindsTheAnswerHoweverItIsCut) {
  for (std::size_t piece = 1; piece <= kLine.size(); ++piece) {
    EXPECT_TRUE(finds_sample(kLine, piece)) << piece;
  }
}

TEST(StartAnswerScanner, FindsTheAnswerBehindNoise) {
  const std::string noises[] = {
      "Welcome to host\nLast login: yesterday\n",
      "no newline at the end",
      "@",
      "@@@",
      "user@host$ ",
      "@fgsync",
      "@fgsync-answer",
      "@fgsync-answer:",
      "@fgsync-answer: kind=session",
      "@fgsync-answer:@fgsync-answer:",
      "@fgsync-answer:\n",
      "@fgsync-@fgsync-answer@",
      std::string("\0\0\xff\xfe\n\0", 6),
      "\r\n\x1b[31mred\x1b[0m",
      kLine.substr(0, kLine.size() / 2),
      kLine.substr(0, kLine.size() / 2) + "\n",
      kLine.substr(0, kLine.size() - 1),
      kLine.substr(0, kLine.size() - 2) + "\n",
      kLine.substr(0, 100) + std::string("\0\xff", 2) + kLine.substr(100),
      std::string(300'000, 'x'),
      std::string(300'000, '@'),
  };
  for (const std::string& noise : noises) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1} << 20}) {
      EXPECT_TRUE(finds_sample(noise + kLine, piece)) << noise.substr(0, 200) << " by " << piece;
    }
  }
}

TEST(StartAnswerScanner, FindsTheAnswerBehindEveryTruncatedOne) {
  for (std::size_t length = 0; length < kLine.size(); ++length) {
    EXPECT_TRUE(finds_sample(kLine.substr(0, length) + kLine, kLine.size() * 2)) << length;
  }
}

TEST(StartAnswerScanner, WhatFollowsTheAnswerDoesNotMatter) {
  StartAnswerScanner scanner;
  const auto result = feed(scanner, kLine + "more noise @fgsync-answer:");
  ASSERT_TRUE(result.ok());
  ASSERT_TRUE(result->has_value());
  EXPECT_TRUE(is_sample(**result));
}

TEST(StartAnswerScanner, AChangeOfAnyByteMakesItNoAnswer) {
  for (std::size_t i = 0; i < kLine.size(); ++i) {
    for (const int flip : {0x01, 0x20, 0x80}) {
      std::string garbled = kLine;
      garbled[i] = char(garbled[i] ^ flip);
      EXPECT_TRUE(finds_nothing(garbled)) << i << " " << flip;
    }
  }
}

TEST(StartAnswerScanner, ALineWithAnotherCheckValueIsNoAnswer) {
  const std::size_t check_at = kLine.find(" check=");
  EXPECT_TRUE(finds_nothing(kLine.substr(0, check_at) + "\n"));
  EXPECT_TRUE(finds_nothing(kLine.substr(0, check_at) + " check=\n"));
  EXPECT_TRUE(finds_nothing(kLine.substr(0, check_at) + " check=" + std::string(32, '0') + "\n"));
  EXPECT_TRUE(finds_nothing(kLine.substr(0, kLine.size() - 1) + "0\n"));
}

TEST(StartAnswerScanner, FindsARefusal) {
  const StartRefusal refusal{12, std::string("cannot listen: 100% @ \"x\"\n\0\xff", 28)};
  StartAnswerScanner scanner;
  const auto result = feed(scanner, "noise@" + encode(refusal));
  ASSERT_TRUE(result.ok());
  ASSERT_TRUE(result->has_value());
  EXPECT_FALSE((*result)->answer.has_value());
  ASSERT_TRUE((*result)->refusal.has_value());
  EXPECT_EQ((*result)->refusal->exit_code, 12);
  EXPECT_EQ((*result)->refusal->message, refusal.message);
}

TEST(StartAnswerScanner, ALongRefusalIsCutAndFound) {
  const std::string longest(limits::kErrorTextBytesMax, '\n');
  const std::string line = encode(StartRefusal{1, longest + "x"});
  EXPECT_LE(line.size(), limits::kStartAnswerBytesMax);
  StartAnswerScanner scanner;
  const auto result = feed(scanner, line);
  ASSERT_TRUE(result.ok());
  ASSERT_TRUE(result->has_value());
  EXPECT_EQ((*result)->refusal->message, longest);
}

TEST(StartAnswerScanner, EveryChoiceSurvivesTheRoundTrip) {
  StartAnswer answer = sample_answer();
  for (const AddressChoice choice :
       {AddressChoice::kReached, AddressChoice::kFacing, AddressChoice::kLoopback}) {
    answer.choice = choice;
    StartAnswerScanner scanner;
    const auto result = feed(scanner, encode(answer));
    ASSERT_TRUE(result.ok() && result->has_value());
    EXPECT_EQ((*result)->answer->choice, choice);
  }
}

TEST(StartAnswerScanner, TooMuchNoiseIsAnError) {
  StartAnswerScanner scanner;
  const std::string noise(limits::kStartNoiseBytesMax - kLine.size(), '@');
  ASSERT_TRUE(feed(scanner, noise).ok());
  StartAnswerScanner same = scanner;
  const auto in_time = feed(same, kLine);
  ASSERT_TRUE(in_time.ok());
  EXPECT_TRUE(in_time->has_value());
  const auto too_late = feed(scanner, "x" + kLine);
  ASSERT_FALSE(too_late.ok());
  EXPECT_EQ(too_late.status().code(), ErrorCode::kProtocolError);
  EXPECT_FALSE(feed(scanner, kLine).ok());
}

TEST(StartAnswerScanner, KeepsTheFirstHundredBytesOfNoise) {
  StartAnswerScanner scanner;
  ASSERT_TRUE(feed(scanner, std::string_view("bash: fgsync: \xff\0not @ found\n", 29)).ok());
  EXPECT_EQ(scanner.noise_start(), std::string_view("bash: fgsync: \xff\0not @ found\n", 29));
  ASSERT_TRUE(feed(scanner, std::string(1000, 'x')).ok());
  EXPECT_EQ(scanner.noise_start(),
            std::string("bash: fgsync: \xff\0not @ found\n", 29) + std::string(71, 'x'));
}

TEST(StartAnswerScanner, TheAnswerIsNoNoise) {
  StartAnswerScanner scanner;
  ASSERT_TRUE(feed(scanner, "hello " + kLine).ok());
  EXPECT_EQ(scanner.noise_start(), "hello ");
}

TEST(StartAnswerScanner, ABrokenAnswerShowsNoKey) {
  const std::size_t psk_at = kLine.find(" psk=");
  for (const std::string& broken :
       {kLine.substr(0, kLine.size() - 5) + "\nmore\n",
        kLine.substr(0, 40) + std::string("\0", 1) + kLine.substr(40, 150) + "\nmore\n",
        kLine.substr(0, 40) + "@" + kLine.substr(psk_at) + "more\n",
        kLine.substr(0, 40) + std::string(limits::kStartAnswerBytesMax, ' ') +
            kLine.substr(psk_at) + "more\n"}) {
    StartAnswerScanner scanner;
    ASSERT_TRUE(feed(scanner, broken).ok());
    EXPECT_EQ(scanner.noise_start(), "@fgsync-answer:\nmore\n");
  }
}

}  // namespace
}  // namespace fgsync::wire
