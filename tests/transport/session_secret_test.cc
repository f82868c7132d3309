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
  std::uint32_t number;
  const char* key;
  const char* nonce;
};
constexpr FrameKeyVector kFrameKeys[] = {
    {0, Direction::kFromInitiator, 0, 0,
     "7140739a4720e73d411b284be8a89549b31303e2d13d25eccb8f813a39e6d421",
     "4f639adafcb1fba0ee98a552"},
    {5, Direction::kToInitiator, 3, 2,
     "d8d821c2421dc431b1d66ab7b43d40871d9030b2dc18c765a325f42bb0a54018",
     "6466c2a8b422cf53d4b98f53"},
    {65535, Direction::kFromInitiator, 4294967295u, 1,
     "66f77d592bda694f92c31f01eb1e475ebd67590168c6a17a7e74af6edea0a394",
     "ea44dd53d5a8d9638c2f7f97"},
};

TEST(SessionSecretTest, FrameKeysAreTheExpansionsOfTheirLabels) {
  const SessionSecret secret(counting_bytes(0));
  for (const FrameKeyVector& expected : kFrameKeys) {
    const auto key =
        secret.frame_key(expected.stream, expected.direction, expected.generation, expected.number);
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
            "40dab33a0c3290e45b46e77612a69fc3161ed426afc0d5f204cab1e0ff085350");
  EXPECT_EQ(hexadecimal(secret.join_mac(preamble, Direction::kToInitiator)),
            "328f79853fbaef32eb106e17d981ea060e912b2fa823292f08dfd907204df51f");
}

TEST(SessionSecretTest, NoTwoFrameKeysOrNoncesAreAlike) {
  const SessionSecret secret(counting_bytes(0));
  std::set<std::string> seen;
  for (const int number : {0, 1, 256}) {
    const auto stream = std::uint16_t(number);
    for (const Direction direction : {Direction::kFromInitiator, Direction::kToInitiator}) {
      for (const std::uint32_t generation : {0u, 1u, 256u, 65536u}) {
        for (const std::uint32_t key_number : {0u, 1u, 256u, 65536u}) {
          const auto key = secret.frame_key(stream, direction, generation, key_number);
          EXPECT_TRUE(seen.insert(hexadecimal(key.key)).second);
          EXPECT_TRUE(seen.insert(hexadecimal(key.nonce)).second);
        }
      }
    }
  }
}

TEST(SessionSecretTest, AnotherSessionHasOtherKeys) {
  const SessionSecret ours(counting_bytes(0));
  const SessionSecret theirs(counting_bytes(1));
  EXPECT_NE(ours.frame_key(0, Direction::kFromInitiator, 0, 0).key,
            theirs.frame_key(0, Direction::kFromInitiator, 0, 0).key);
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
