#include "transport/session_secret.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace fgsync::transport {
namespace {

std::array<std::byte, 32> counting_bytes(unsigned first) {
  std::array<std::byte, 32> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(first + i);
  return bytes;
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

// Expected values: `openssl kdf -keylen N -kdfopt mode:EXPAND_ONLY -kdfopt digest:SHA256 -kdfopt
// hexkey:SECRET -kdfopt hexinfo:INFO HKDF` with the info strings that session_secret.h describes.
struct FrameKeyVector {
  std::uint16_t stream;
  Direction direction;
  std::uint32_t generation;
  const char* key;
  const char* nonce;
};
constexpr FrameKeyVector kFrameKeys[] = {
    {0, Direction::kFromInitiator, 0,
     "8049f95789908b5176b1f75bd7ecc905e0e65b629038fd7361112a8b7d0a3119",
     "c12ce24ebdf8281715c1c522"},
    {5, Direction::kToInitiator, 3,
     "352d291cc4c9dffc4b3ac6edb6a28dacde7a9e9a8e0430a0b013bbd6b43a9f3d",
     "21743fe50551d9d3c123ea24"},
    {65535, Direction::kFromInitiator, 4294967295u,
     "9333ddbccf78d70ff95c8755fd89b1821e46bf4648f87b65c42a6074c050a6fd",
     "9ca8756a160c2d13a7449cbd"},
};

TEST(SessionSecretTest, FrameKeysAreTheExpansionsOfTheirLabels) {
  const SessionSecret secret(counting_bytes(0));
  for (const FrameKeyVector& expected : kFrameKeys) {
    const auto key = secret.frame_key(expected.stream, expected.direction, expected.generation);
    EXPECT_EQ(hexadecimal(key.key), expected.key);
    EXPECT_EQ(hexadecimal(key.nonce), expected.nonce);
  }
}

// Expected values: the join key by `openssl kdf` as above, the MAC by `openssl mac -digest SHA256
// -macopt hexkey:KEY HMAC`.
TEST(SessionSecretTest, JoinMacIsHmacUnderTheJoinKeyOfItsMaker) {
  const SessionSecret secret(counting_bytes(0));
  const auto preamble = counting_bytes(100);
  EXPECT_EQ(hexadecimal(secret.join_mac(preamble, Direction::kFromInitiator)),
            "403a3e4b8bb0149280f076dbc0d65372539893b48a945aaf2306dfaa77c1a707");
  EXPECT_EQ(hexadecimal(secret.join_mac(preamble, Direction::kToInitiator)),
            "b86a2b9ee75e1a25ea6aa5c051eaa9349d259840c459555bed6bfd7e444371e1");
}

TEST(SessionSecretTest, NoTwoFrameKeysOrNoncesAreAlike) {
  const SessionSecret secret(counting_bytes(0));
  std::set<std::string> seen;
  for (const int number : {0, 1, 256}) {
    const auto stream = std::uint16_t(number);
    for (const Direction direction : {Direction::kFromInitiator, Direction::kToInitiator}) {
      for (const std::uint32_t generation : {0u, 1u, 256u, 65536u}) {
        const auto key = secret.frame_key(stream, direction, generation);
        EXPECT_TRUE(seen.insert(hexadecimal(key.key)).second);
        EXPECT_TRUE(seen.insert(hexadecimal(key.nonce)).second);
      }
    }
  }
}

TEST(SessionSecretTest, AnotherSessionHasOtherKeys) {
  const SessionSecret ours(counting_bytes(0));
  const SessionSecret theirs(counting_bytes(1));
  EXPECT_NE(ours.frame_key(0, Direction::kFromInitiator, 0).key,
            theirs.frame_key(0, Direction::kFromInitiator, 0).key);
  const auto preamble = counting_bytes(100);
  EXPECT_NE(ours.join_mac(preamble, Direction::kFromInitiator),
            theirs.join_mac(preamble, Direction::kFromInitiator));
}

TEST(SessionSecretTest, SecretsAreComparedByLengthAndContent) {
  const auto bytes = counting_bytes(0);
  auto changed = bytes;
  changed[31] ^= std::byte{0x80};
  EXPECT_TRUE(equal_secret(bytes, counting_bytes(0)));
  EXPECT_FALSE(equal_secret(bytes, changed));
  EXPECT_FALSE(equal_secret(bytes, std::span(bytes).first(31)));
  EXPECT_TRUE(equal_secret({}, {}));
}

TEST(SessionSecretTest, WipedBytesAreZero) {
  auto bytes = counting_bytes(1);
  wipe(bytes);
  EXPECT_EQ(bytes, (std::array<std::byte, 32>{}));
}

TEST(CipherChoiceTest, AutomaticChoiceIsAesOnlyWhereBothSidesHaveIt) {
  EXPECT_EQ(choose_cipher(Cipher::kAuto, true, true), Cipher::kAes128Gcm);
  EXPECT_EQ(choose_cipher(Cipher::kAuto, true, false), Cipher::kChaCha20Poly1305);
  EXPECT_EQ(choose_cipher(Cipher::kAuto, false, true), Cipher::kChaCha20Poly1305);
  EXPECT_EQ(choose_cipher(Cipher::kAuto, false, false), Cipher::kChaCha20Poly1305);
}

TEST(CipherChoiceTest, WhatWasAskedForIsTaken) {
  for (const Cipher asked :
       {Cipher::kAes128Gcm, Cipher::kAes256Gcm, Cipher::kChaCha20Poly1305, Cipher::kNone}) {
    EXPECT_EQ(choose_cipher(asked, false, false), asked);
    EXPECT_EQ(choose_cipher(asked, true, true), asked);
  }
}

TEST(CipherChoiceTest, NamesAreThoseOfTheCommandLine) {
  EXPECT_STREQ(cipher_name(Cipher::kAuto), "auto");
  EXPECT_STREQ(cipher_name(Cipher::kAes128Gcm), "aes128-gcm");
  EXPECT_STREQ(cipher_name(Cipher::kAes256Gcm), "aes256-gcm");
  EXPECT_STREQ(cipher_name(Cipher::kChaCha20Poly1305), "chacha20");
  EXPECT_STREQ(cipher_name(Cipher::kNone), "none");
}

}  // namespace
}  // namespace fgsync::transport
