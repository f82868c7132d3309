#include "transport/preamble.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace fgsync::transport {
namespace {

SessionId session_id(unsigned first) {
  SessionId id;
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = std::byte(first + i);
  return id;
}

SessionSecret zero_secret() { return SessionSecret(std::array<std::byte, 32>{}); }

std::string text_of(std::span<const std::byte> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

TEST(PreambleTest, ControlPreambleHasTheDocumentedBytes) {
  const PreambleBytes bytes = control_preamble(session_id('A'));
  EXPECT_EQ(text_of(bytes),
            std::string("fgsync-c\x01\0\0\0\0\0\0\0ABCDEFGHIJKLMNOP", 32) + std::string(32, '\0'));
}

TEST(PreambleTest, DataPreambleHasTheDocumentedBytesAndTheInitiatorsMac) {
  const PreambleBytes bytes = data_preamble(session_id('A'), 0x0102, 0x03040506, zero_secret());
  EXPECT_EQ(text_of(std::span(bytes).first(32)),
            std::string("fgsync-d\x01\0\x02\x01\x06\x05\x04\x03"
                        "ABCDEFGHIJKLMNOP",
                        32));
  const Mac mac = zero_secret().join_mac(std::span(bytes).first(32), Direction::kFromInitiator);
  EXPECT_EQ(text_of(std::span(bytes).last(32)), text_of(mac));
}

TEST(PreambleTest, WhatWasMadeIsParsed) {
  const auto control = parse_preamble(control_preamble(session_id(7)));
  ASSERT_TRUE(control);
  EXPECT_TRUE(control->is_control);
  EXPECT_EQ(control->session, session_id(7));
  const PreambleBytes bytes = data_preamble(session_id(7), 63, 0xfffffffe, zero_secret());
  const auto data = parse_preamble(bytes);
  ASSERT_TRUE(data);
  EXPECT_FALSE(data->is_control);
  EXPECT_EQ(data->stream, 63);
  EXPECT_EQ(data->generation, 0xfffffffe);
  EXPECT_EQ(data->session, session_id(7));
  EXPECT_EQ(text_of(data->mac), text_of(std::span(bytes).last(32)));
}

TEST(PreambleTest, OtherMagicOrVersionIsRefusedAndForControlOtherNumbers) {
  // Every byte of magic and version, and for control also stream, generation and MAC.
  for (std::size_t position = 0; position < 16; ++position) {
    PreambleBytes control = control_preamble(session_id(7));
    control[position] ^= std::byte{0x40};
    EXPECT_FALSE(parse_preamble(control)) << position;
    PreambleBytes data = data_preamble(session_id(7), 1, 0, zero_secret());
    data[position] ^= std::byte{0x40};
    const bool is_number = position >= 10;
    EXPECT_EQ(parse_preamble(data).has_value(), is_number) << position;
  }
  PreambleBytes with_mac = control_preamble(session_id(7));
  with_mac[63] = std::byte{1};
  EXPECT_FALSE(parse_preamble(with_mac));
}

}  // namespace
}  // namespace fgsync::transport
