#include "transport/frame_cipher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

namespace fgsync::transport {
namespace {

using Bytes = std::vector<std::byte>;
using Tag = std::array<std::byte, kTagBytes>;

constexpr std::uint16_t kStream = 5;
constexpr Direction kDirection = Direction::kToInitiator;
constexpr std::uint32_t kGeneration = 2;

SessionSecret counting_secret(unsigned first = 0) {
  std::array<std::byte, 32> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(first + i);
  return SessionSecret(bytes);
}

Bytes counting_bytes(std::size_t size, unsigned first) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = std::byte(first + i + (i >> 8));
  return bytes;
}

struct SealedFrame {
  Bytes associated;
  Bytes payload;
  Tag tag{};
};

std::unique_ptr<FrameCipher> make_cipher(Cipher cipher, std::uint64_t bytes_per_key = kBytesPerKey,
                                         const SessionSecret& secret = counting_secret(),
                                         std::uint16_t stream = kStream,
                                         Direction direction = kDirection,
                                         std::uint32_t generation = kGeneration) {
  auto made = FrameCipher::create(cipher, secret, stream, direction, generation, bytes_per_key);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(*made);
}

SealedFrame seal_frame(FrameCipher& cipher, Bytes associated, Bytes payload,
                       std::size_t piece_bytes = SIZE_MAX) {
  SealedFrame frame{std::move(associated), std::move(payload), {}};
  EXPECT_TRUE(cipher.begin_seal(frame.associated).ok());
  for (std::size_t done = 0; done < frame.payload.size();) {
    const auto piece =
        std::span(frame.payload).subspan(done, std::min(piece_bytes, frame.payload.size() - done));
    EXPECT_TRUE(cipher.seal(piece).ok());
    done += piece.size();
  }
  EXPECT_TRUE(cipher.finish_seal(frame.tag).ok());
  return frame;
}

// Opens in place; the code of the first step that fails.
ErrorCode open_frame(FrameCipher& cipher, SealedFrame& frame, std::size_t piece_bytes = SIZE_MAX) {
  if (Status begun = cipher.begin_open(frame.associated); !begun.ok()) return begun.code();
  for (std::size_t done = 0; done < frame.payload.size();) {
    const auto piece =
        std::span(frame.payload).subspan(done, std::min(piece_bytes, frame.payload.size() - done));
    if (Status opened = cipher.open(piece); !opened.ok()) return opened.code();
    done += piece.size();
  }
  return cipher.finish_open(frame.tag).code();
}

std::string joined(const SealedFrame& frame) {
  Bytes all = frame.payload;
  all.insert(all.end(), frame.tag.begin(), frame.tag.end());
  std::string text;
  for (const std::byte byte : all) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

class FrameCipherTest : public testing::TestWithParam<Cipher> {};

std::string cipher_text(const testing::TestParamInfo<Cipher>& instance) {
  switch (instance.param) {
    case Cipher::kAes128Gcm:
      return "Aes128Gcm";
    case Cipher::kAes256Gcm:
      return "Aes256Gcm";
    default:
      return "ChaCha20Poly1305";
  }
}

INSTANTIATE_TEST_SUITE_P(Ciphers, FrameCipherTest,
                         testing::Values(Cipher::kAes128Gcm, Cipher::kAes256Gcm,
                                         Cipher::kChaCha20Poly1305),
                         cipher_text);

// Computed with Python's hmac module (HKDF-Expand) and the one-shot AEADs of its `cryptography`
// package: secret 00..1f, stream 5, to the initiator, generation 2, associated data 40..63.
struct KnownFrames {
  Cipher cipher;
  const char* first;
  const char* second;
  const char* first_of_the_next_key;
};
constexpr KnownFrames kKnownFrames[] = {
    {Cipher::kAes128Gcm,
     "f4e8a194b01f5e9d7ede21f84c8b06329a9cf4751a1edd5b9eea5d850bda264a3b65d43b9978e84e60a26d",
     "f14fe2faa5c928dd50ee9610ea3bf9432048aa67f288685c7ac31af4a0b48bd45162",
     "2870088bf8c67400253fbd0c13d07e8ee923429d0f774f2e9ea2775a5d9057"},
    {Cipher::kAes256Gcm,
     "b5dc51fdfdc0c62575a0dc574d74577c9fbd0f2d9e28589430cc60e942a38d14f99b8e016f6e6a6ec0acca",
     "721ecffdfb7826f6bdc1cb3b72f68bcfe2e61c81f686ed7fcb760a710bcbcbc41c75",
     "8f42de655fc2ec43b9bf015dca81f4c9816597040530acdb887f706bc877a0"},
    {Cipher::kChaCha20Poly1305,
     "004ee253672c66a4c047d6a02536a1ea13ced58466c412ccd53851c25f821916b10dcd08336e9d366e741c",
     "144ecef745a43f0d069d724d4333e80cbaa588bf6bb6fd4c5baf7b8fdcca3aa75443",
     "15b6622ab1e3e28cb89095272353f6fa9852113269eb81da6e689ce070a5bf"},
};

Bytes text_bytes(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(first, first + text.size());
}

TEST_P(FrameCipherTest, FramesAreThoseOfAnIndependentImplementation) {
  const auto known = std::find_if(std::begin(kKnownFrames), std::end(kKnownFrames),
                                  [](const KnownFrames& one) { return one.cipher == GetParam(); });
  const Bytes associated = counting_bytes(36, 0x40);
  const std::string first = "the first frame of a stream";
  const std::string second = "and the second one";
  // Both frames together reach the bound, each alone does not.
  auto cipher = make_cipher(GetParam(), 2 * 36 + first.size() + second.size());
  EXPECT_EQ(joined(seal_frame(*cipher, associated, text_bytes(first))), known->first);
  EXPECT_EQ(joined(seal_frame(*cipher, associated, text_bytes(second))), known->second);
  EXPECT_EQ(joined(seal_frame(*cipher, associated, text_bytes("under a new key"))),
            known->first_of_the_next_key);
}

TEST_P(FrameCipherTest, WhatWasSealedOpensWhateverTheSizesAndPieces) {
  auto sealer = make_cipher(GetParam());
  auto opener = make_cipher(GetParam());
  constexpr std::size_t kKiB = 1024;
  const std::size_t sizes[] = {0,    1,     15,         16,          17,
                               4096, 65537, 256 * kKiB, 1024 * kKiB, 5 * 1024 * kKiB};
  for (const std::size_t size : sizes) {
    for (const std::size_t piece_bytes : {std::size_t{1000}, 256 * kKiB, SIZE_MAX}) {
      const Bytes plain = counting_bytes(size, unsigned(size));
      SealedFrame frame = seal_frame(*sealer, counting_bytes(36, 1), plain, piece_bytes);
      if (size > 15) {
        EXPECT_NE(frame.payload, plain);
      }
      // Other pieces than the sender's: only the frame counts.
      EXPECT_EQ(open_frame(*opener, frame, 96 * kKiB + 7), ErrorCode::kOk);
      EXPECT_EQ(frame.payload, plain);
    }
  }
}

TEST_P(FrameCipherTest, AnyFlippedBitIsRefused) {
  const Bytes associated = counting_bytes(36, 1);
  const Bytes plain = counting_bytes(1000, 7);
  const SealedFrame sealed = seal_frame(*make_cipher(GetParam()), associated, plain);
  for (std::size_t position = 0; position < 36 + 1000 + kTagBytes; position += 3) {
    SealedFrame frame = sealed;
    const std::byte flip = std::byte(1u << (position % 8));
    if (position < 36) {
      frame.associated[position] ^= flip;
    } else if (position < 36 + 1000) {
      frame.payload[position - 36] ^= flip;
    } else {
      frame.tag[position - 36 - 1000] ^= flip;
    }
    EXPECT_EQ(open_frame(*make_cipher(GetParam()), frame), ErrorCode::kProtocolError) << position;
  }
}

TEST_P(FrameCipherTest, NothingOpensAfterAFrameThatDidNot) {
  auto sealer = make_cipher(GetParam());
  auto opener = make_cipher(GetParam());
  SealedFrame bad = seal_frame(*sealer, counting_bytes(36, 1), counting_bytes(100, 1));
  SealedFrame good = seal_frame(*sealer, counting_bytes(36, 1), counting_bytes(100, 2));
  bad.tag[0] ^= std::byte{1};
  EXPECT_EQ(open_frame(*opener, bad), ErrorCode::kProtocolError);
  EXPECT_EQ(open_frame(*opener, good), ErrorCode::kProtocolError);
}

TEST_P(FrameCipherTest, ReplayedFrameIsRefused) {
  auto opener = make_cipher(GetParam());
  const SealedFrame sealed =
      seal_frame(*make_cipher(GetParam()), counting_bytes(36, 1), counting_bytes(100, 1));
  SealedFrame once = sealed;
  SealedFrame again = sealed;
  EXPECT_EQ(open_frame(*opener, once), ErrorCode::kOk);
  EXPECT_EQ(open_frame(*opener, again), ErrorCode::kProtocolError);
}

TEST_P(FrameCipherTest, FramesOutOfOrderAreRefused) {
  auto sealer = make_cipher(GetParam());
  auto opener = make_cipher(GetParam());
  SealedFrame first = seal_frame(*sealer, counting_bytes(36, 1), counting_bytes(100, 1));
  SealedFrame second = seal_frame(*sealer, counting_bytes(36, 1), counting_bytes(100, 2));
  EXPECT_EQ(open_frame(*opener, second), ErrorCode::kProtocolError);
}

TEST_P(FrameCipherTest, TruncatedPayloadIsRefused) {
  SealedFrame frame =
      seal_frame(*make_cipher(GetParam()), counting_bytes(36, 1), counting_bytes(100, 1));
  frame.payload.pop_back();
  EXPECT_EQ(open_frame(*make_cipher(GetParam()), frame), ErrorCode::kProtocolError);
}

TEST_P(FrameCipherTest, KeysOfAnotherStreamDirectionConnectionOrSessionDoNotOpen) {
  const SealedFrame sealed =
      seal_frame(*make_cipher(GetParam()), counting_bytes(36, 1), counting_bytes(100, 1));
  const SessionSecret ours = counting_secret();
  const SessionSecret theirs = counting_secret(1);
  auto other_stream = make_cipher(GetParam(), kBytesPerKey, ours, kStream + 1);
  auto other_direction =
      make_cipher(GetParam(), kBytesPerKey, ours, kStream, Direction::kFromInitiator);
  auto other_connection =
      make_cipher(GetParam(), kBytesPerKey, ours, kStream, kDirection, kGeneration + 1);
  auto other_session = make_cipher(GetParam(), kBytesPerKey, theirs);
  for (FrameCipher* opener :
       {other_stream.get(), other_direction.get(), other_connection.get(), other_session.get()}) {
    SealedFrame frame = sealed;
    EXPECT_EQ(open_frame(*opener, frame), ErrorCode::kProtocolError);
  }
}

// The key after the first one of a connection is not the first one of the next connection.
TEST_P(FrameCipherTest, NoConnectionUsesAKeyOfAnother) {
  std::set<std::string> sealed;
  for (const std::uint32_t generation : {0u, 1u, 2u, 3u}) {
    auto cipher = make_cipher(GetParam(), 1, counting_secret(), kStream, kDirection, generation);
    for (int frame = 0; frame < 4; ++frame) {
      const SealedFrame one = seal_frame(*cipher, counting_bytes(36, 1), counting_bytes(100, 1));
      EXPECT_TRUE(sealed.insert(joined(one)).second);
    }
  }
}

TEST_P(FrameCipherTest, BothSidesChangeKeysAtTheSameFrame) {
  auto sealer = make_cipher(GetParam(), 200);
  auto opener = make_cipher(GetParam(), 200);
  for (unsigned i = 0; i < 300; ++i) {
    const Bytes plain = counting_bytes(i % 97, i);
    SealedFrame frame = seal_frame(*sealer, counting_bytes(36, i), plain);
    ASSERT_EQ(open_frame(*opener, frame), ErrorCode::kOk) << i;
    ASSERT_EQ(frame.payload, plain);
  }
}

TEST_P(FrameCipherTest, FramesOfAnOlderKeyAreRefused) {
  auto sealer = make_cipher(GetParam(), 1);  // a key for each frame
  auto opener = make_cipher(GetParam(), 1);
  SealedFrame first = seal_frame(*sealer, counting_bytes(36, 1), counting_bytes(100, 1));
  SealedFrame replayed = first;
  SealedFrame second = seal_frame(*sealer, counting_bytes(36, 1), counting_bytes(100, 1));
  EXPECT_NE(second.payload, first.payload);  // the same contents, counter and header
  EXPECT_EQ(open_frame(*opener, first), ErrorCode::kOk);
  EXPECT_EQ(open_frame(*opener, replayed), ErrorCode::kProtocolError);
}

}  // namespace
}  // namespace fgsync::transport
