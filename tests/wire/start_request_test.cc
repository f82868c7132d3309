#include <gtest/gtest.h>

#include "base/limits.h"
#include "wire/start_line.h"

namespace fgsync::wire {
namespace {

StartRequest sample_request() {
  StartRequest request;
  request.version_min = 1;
  request.version_max = 2;
  request.io_engine = IoEngine::kPosix;
  request.streams = 12;
  request.ports = {4000, 4010};
  request.allow_public = true;
  request.family = AddressFamily::kIpv6;
  request.facing = "fe80::1%ens6";
  return request;
}

// The sample's line with one piece of it replaced.
std::string line_with(const std::string& piece, const std::string& replacement) {
  std::string line = encode(sample_request());
  const std::size_t at = line.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return line.replace(at, piece.size(), replacement);
}

bool is_refused(const std::string& line) {
  const auto request = decode_start_request(line);
  return !request.ok() && request.status().code() == ErrorCode::kProtocolError;
}

TEST(StartRequest, IsTheSpecifiedLine) {
  EXPECT_EQ(encode(sample_request()),
            "fgsync-start version-min=1 version-max=2 io-engine=posix streams=12 port-low=4000 "
            "port-high=4010 public=1 family=ipv6 facing=fe80::1%25ens6\n");
}

TEST(StartRequest, SurvivesTheRoundTrip) {
  const auto request = decode_start_request(encode(sample_request()));
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->version_min, 1);
  EXPECT_EQ(request->version_max, 2);
  EXPECT_EQ(request->io_engine, IoEngine::kPosix);
  EXPECT_EQ(request->streams, 12);
  EXPECT_EQ(request->ports.low, 4000);
  EXPECT_EQ(request->ports.high, 4010);
  EXPECT_TRUE(request->allow_public);
  EXPECT_EQ(request->family, AddressFamily::kIpv6);
  EXPECT_EQ(request->facing, "fe80::1%ens6");
}

TEST(StartRequest, EveryWordSurvivesTheRoundTrip) {
  StartRequest request;
  request.version_min = request.version_max = 1;
  for (const IoEngine engine : {IoEngine::kAuto, IoEngine::kUring, IoEngine::kPosix}) {
    for (const AddressFamily family :
         {AddressFamily::kAny, AddressFamily::kIpv4, AddressFamily::kIpv6}) {
      request.io_engine = engine;
      request.family = family;
      const auto decoded = decode_start_request(encode(request));
      ASSERT_TRUE(decoded.ok());
      EXPECT_EQ(decoded->io_engine, engine);
      EXPECT_EQ(decoded->family, family);
      EXPECT_FALSE(decoded->allow_public);
      EXPECT_EQ(decoded->facing, "");
    }
  }
}

TEST(StartRequest, TheNewlineMayHaveBeenTakenOff) {
  std::string line = encode(sample_request());
  line.pop_back();
  EXPECT_TRUE(decode_start_request(line).ok());
}

TEST(StartRequest, UnknownKeysAreIgnoredAndOrderIsFree) {
  EXPECT_TRUE(decode_start_request(line_with(" streams", " rdma=yes%20please streams")).ok());
  EXPECT_TRUE(decode_start_request(line_with(" facing", " = facing")).ok());
  std::string line = line_with(" public=1", "");
  line.insert(line.find(" version-min"), " public=1");
  EXPECT_TRUE(decode_start_request(line).ok());
}

TEST(StartRequest, EveryKnownKeyIsNeeded) {
  for (const char* field :
       {" version-min=1", " version-max=2", " io-engine=posix", " streams=12", " port-low=4000",
        " port-high=4010", " public=1", " family=ipv6", " facing=fe80::1%25ens6"}) {
    EXPECT_TRUE(is_refused(line_with(field, ""))) << field;
  }
}

TEST(StartRequest, InvalidValuesAreRefused) {
  const std::pair<const char*, const char*> invalid[] = {
      {"version-min=1", "version-min=0"},
      {"version-min=1", "version-min=3"},
      {"version-max=2", "version-max=65536"},
      {"posix", "Posix"},
      {"posix", ""},
      {"streams=12", "streams=0"},
      {"streams=12", "streams=65"},
      {"streams=12", "streams=+1"},
      {"streams=12", "streams=-1"},
      {"streams=12", "streams=12x"},
      {"streams=12", "streams="},
      {"streams=12", "streams=99999999999999999999999"},
      {"low=4000", "low=4011"},
      {"low=4000", "low=0"},
      {"high=4010", "high=65536"},
      {"public=1", "public=2"},
      {"ipv6", "ipv5"},
      {"%25ens6", "%2"},
      {"%25ens6", "%"},
      {"%25", "%zz"},
      {"%25", "%00"},
      {"%25", "%20"},
      {"%25", "\x1b"},
  };
  for (const auto& [piece, replacement] : invalid) {
    EXPECT_TRUE(is_refused(line_with(piece, replacement))) << piece << " -> " << replacement;
  }
}

TEST(StartRequest, WhatIsNoFieldIsRefused) {
  EXPECT_TRUE(is_refused(""));
  EXPECT_TRUE(is_refused("\n"));
  EXPECT_TRUE(is_refused("hello\n"));
  EXPECT_TRUE(is_refused("fgsync-start\n"));
  EXPECT_TRUE(is_refused(line_with("fgsync-start ", "fgsync-started ")));
  EXPECT_TRUE(is_refused(line_with(" streams", " word streams")));
  EXPECT_TRUE(is_refused(line_with(" streams", "  streams")));
  EXPECT_TRUE(is_refused(line_with(" streams", " streams=3 streams")));
  EXPECT_TRUE(is_refused(encode(sample_request()) + "\n"));
}

TEST(StartRequest, LengthsAreBounded) {
  const auto padded = [](std::size_t bytes) {
    std::string line = line_with(" streams", " padding= streams");
    line.insert(line.find("padding=") + 8, std::string(bytes - line.size(), 'x'));
    return line;
  };
  EXPECT_TRUE(decode_start_request(padded(limits::kStartRequestBytesMax)).ok());
  EXPECT_TRUE(is_refused(padded(limits::kStartRequestBytesMax + 1)));
  StartRequest request = sample_request();
  request.facing = std::string(limits::kLabelBytesMax, '%');
  const std::string longest = encode(request);
  EXPECT_TRUE(decode_start_request(longest).ok());
  EXPECT_LE(longest.size(), limits::kStartRequestBytesMax);
  EXPECT_TRUE(
      is_refused(line_with("facing=", "facing=" + std::string(limits::kLabelBytesMax, 'x'))));
}

}  // namespace
}  // namespace fgsync::wire
