#include "io/address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <vector>

namespace fgsync::io {
namespace {

SocketAddress parsed(const std::string& text, std::uint16_t port = 8730) {
  auto address = SocketAddress::parse(text, port);
  EXPECT_TRUE(address.ok()) << text;
  return address.ok() ? *address : SocketAddress();
}

TEST(SocketAddressTest, LiteralsArePrintedAsTheyWereRead) {
  for (const char* text : {"10.0.0.1", "255.255.255.255", "::1", "fd00::1", "fe80::1%lo"}) {
    EXPECT_EQ(parsed(text).host_text(), text);
  }
}

TEST(SocketAddressTest, PortIsPrintedAfterBracketsForIpv6) {
  EXPECT_EQ(parsed("10.0.0.1").text(), "10.0.0.1:8730");
  EXPECT_EQ(parsed("fd00::1").text(), "[fd00::1]:8730");
}

TEST(SocketAddressTest, NamesBracketsAndNonsenseAreRefused) {
  for (const char* text :
       {"", "localhost", "[::1]", "10.0.0", "10.0.0.256", "10.0.0.1:80", "10.0.0.1%lo", "::1%",
        "fe80::1%no-such-interface", ":::", " 10.0.0.1"}) {
    const auto address = SocketAddress::parse(text, 1);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.status().code(), ErrorCode::kInvalidArgument) << text;
  }
}

TEST(SocketAddressTest, ScopeIsTakenByNameAndByIndex) {
  EXPECT_EQ(parsed("fe80::1%1").host_text(), parsed("fe80::1%lo").host_text());
}

TEST(SocketAddressTest, PortCanBeReplaced) {
  for (const char* text : {"10.0.0.1", "fd00::1"}) {
    SocketAddress address = parsed(text, 1);
    address.set_port(65535);
    EXPECT_EQ(address.port(), 65535);
    EXPECT_EQ(address.host_text(), text);
  }
}

TEST(SocketAddressTest, NothingIsReadFromATruncatedSystemAddress) {
  sockaddr_in6 system{};
  system.sin6_family = AF_INET6;
  const auto* const address = reinterpret_cast<const sockaddr*>(&system);
  EXPECT_TRUE(SocketAddress::from_system(address, sizeof system).valid());
  EXPECT_FALSE(SocketAddress::from_system(address, sizeof system - 1).valid());
  EXPECT_FALSE(SocketAddress::from_system(nullptr, 0).valid());
}

struct Expected {
  const char* text;
  bool is_private;
};

// The first and last address of each range, and their neighbours outside.
constexpr Expected kPrivateTable[] = {
    {"9.255.255.255", false},
    {"10.0.0.0", true},
    {"10.255.255.255", true},
    {"11.0.0.0", false},
    {"172.15.255.255", false},
    {"172.16.0.0", true},
    {"172.31.255.255", true},
    {"172.32.0.0", false},
    {"192.167.255.255", false},
    {"192.168.0.0", true},
    {"192.168.255.255", true},
    {"192.169.0.0", false},
    {"100.63.255.255", false},
    {"100.64.0.0", true},
    {"100.127.255.255", true},
    {"100.128.0.0", false},
    {"169.253.255.255", false},
    {"169.254.0.0", true},
    {"169.254.255.255", true},
    {"169.255.0.0", false},
    {"126.255.255.255", false},
    {"127.0.0.0", true},
    {"127.255.255.255", true},
    {"128.0.0.0", false},
    {"0.0.0.0", false},
    {"8.8.8.8", false},
    {"224.0.0.1", false},
    {"255.255.255.255", false},
    {"::", false},
    {"::1", true},
    {"::2", false},
    {"fbff:ffff::", false},
    {"fc00::", true},
    {"fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true},
    {"fe00::", false},
    {"fe7f:ffff::", false},
    {"fe80::", true},
    {"febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true},
    {"fec0::", false},
    {"ff02::1", false},
    {"2001:db8::1", false},
    {"2606:4700::1111", false},
    {"::ffff:10.1.2.3", true},
    {"::ffff:127.0.0.1", true},
    {"::ffff:8.8.8.8", false},
    {"::ffff:0.0.0.0", false},
    {"::10.1.2.3", false},
    {"64:ff9b::10.1.2.3", false},
};

TEST(SocketAddressTest, PrivateRangesEndWhereTheirStandardsSay) {
  for (const Expected& expected : kPrivateTable) {
    EXPECT_EQ(parsed(expected.text).is_private(), expected.is_private) << expected.text;
  }
}

TEST(SocketAddressTest, NoAddressIsNeitherPrivateNorWildcard) {
  const SocketAddress none;
  EXPECT_FALSE(none.valid());
  EXPECT_FALSE(none.is_private());
  EXPECT_FALSE(none.is_wildcard());
  EXPECT_FALSE(none.is_loopback());
  EXPECT_FALSE(none.same_host(none));
}

TEST(SocketAddressTest, WildcardAndLoopbackAreSeenThroughMapping) {
  for (const char* text : {"0.0.0.0", "::", "::ffff:0.0.0.0"}) {
    EXPECT_TRUE(parsed(text).is_wildcard()) << text;
  }
  for (const char* text : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(parsed(text).is_loopback()) << text;
  }
  EXPECT_FALSE(parsed("10.0.0.1").is_loopback());
}

TEST(SocketAddressTest, SameHostIgnoresPortAndMappingButNotScope) {
  EXPECT_TRUE(parsed("10.0.0.1", 1).same_host(parsed("10.0.0.1", 2)));
  EXPECT_TRUE(parsed("10.0.0.1").same_host(parsed("::ffff:10.0.0.1")));
  EXPECT_TRUE(parsed("fe80::1%lo").same_host(parsed("fe80::1%lo")));
  EXPECT_FALSE(parsed("fe80::1%lo").same_host(parsed("fe80::1")));
  EXPECT_FALSE(parsed("10.0.0.1").same_host(parsed("10.0.0.2")));
  EXPECT_FALSE(parsed("10.0.0.1").same_host(parsed("fd00::1")));
}

}  // namespace
}  // namespace fgsync::io
