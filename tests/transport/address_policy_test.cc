#include "transport/address_policy.h"

#include <gtest/gtest.h>

namespace fgsync::transport {
namespace {

io::SocketAddress address(const std::string& text, std::uint16_t port = 0) {
  auto parsed = io::SocketAddress::parse(text, port);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? *parsed : io::SocketAddress();
}

// A host with fixed interfaces; nothing else of the seam is asked for.
class FixedNetwork final : public io::Network {
 public:
  void add(const std::string& interface, const std::string& text) {
    interfaces_.push_back({interface, address(text)});
  }
  Result<io::Socket> listen(const io::SocketAddress&) override { return unused(); }
  Result<io::Socket> create(const io::SocketAddress&,
                            const std::optional<io::SocketAddress>&) override {
    return unused();
  }
  void prepare_accepted(const io::Socket&) override {}
  Result<io::SocketAddress> local_address(const io::Socket&) override { return unused(); }
  Result<io::SocketAddress> peer_address(const io::Socket&) override { return unused(); }
  Result<io::SocketAddress> source_address_for(const io::SocketAddress&) override {
    return unused();
  }
  Result<std::vector<io::InterfaceAddress>> interfaces() override { return interfaces_; }
  void shutdown(int) override {}
  void close(int) override {}

 private:
  static Status unused() { return Status(ErrorCode::kUnsupported, "not asked for"); }
  std::vector<io::InterfaceAddress> interfaces_;
};

struct PolicyCase {
  const char* text;
  bool allowed;              // as it is
  bool allowed_with_option;  // with --allow-public
};
constexpr PolicyCase kPolicy[] = {
    {"127.0.0.1", true, true},
    {"127.8.9.10", true, true},
    {"10.0.0.1", true, true},
    {"172.16.0.1", true, true},
    {"172.31.255.254", true, true},
    {"172.32.0.1", false, true},
    {"192.168.1.1", true, true},
    {"192.169.1.1", false, true},
    {"100.64.0.1", true, true},
    {"100.127.255.254", true, true},
    {"100.128.0.1", false, true},
    {"169.254.1.1", true, true},
    {"8.8.8.8", false, true},
    {"203.0.113.5", false, true},
    {"::1", true, true},
    {"fd00::1", true, true},
    {"fc00::1", true, true},
    {"fe80::1", true, true},
    {"2001:4860:4860::8888", false, true},
    {"::ffff:10.0.0.1", true, true},
    {"::ffff:8.8.8.8", false, true},
    {"0.0.0.0", false, false},
    {"::", false, false},
};

TEST(AddressPolicyTest, PrivateAddressesAreAllowedPublicOnesByOptionWildcardsNever) {
  for (const PolicyCase& one : kPolicy) {
    EXPECT_EQ(check_address(address(one.text), false).ok(), one.allowed) << one.text;
    EXPECT_EQ(check_address(address(one.text), true).ok(), one.allowed_with_option) << one.text;
  }
}

TEST(AddressPolicyTest, RefusalNamesTheAddressAndTheOption) {
  const Status refused = check_address(address("203.0.113.5"), false);
  EXPECT_EQ(refused.code(), ErrorCode::kRefused);
  EXPECT_NE(refused.message().find("203.0.113.5"), std::string::npos);
  EXPECT_NE(refused.message().find("--allow-public"), std::string::npos);
}

class ResolveBindTest : public testing::Test {
 protected:
  ResolveBindTest() {
    network_.add("lo", "127.0.0.1");
    network_.add("lo", "::1");
    network_.add("ens5", "203.0.113.5");
    network_.add("ens5", "10.1.2.3");
    network_.add("ens5", "fd00::5");
    network_.add("ens6", "192.168.7.1");
    network_.add("wan0", "198.51.100.9");
  }
  Result<io::SocketAddress> resolve(const std::string& bind,
                                    AddressFamily family = AddressFamily::kAny,
                                    bool allow_public = false) {
    return resolve_bind(network_, bind, family, allow_public);
  }
  FixedNetwork network_;
};

TEST_F(ResolveBindTest, AddressOfThisHostIsTaken) {
  EXPECT_EQ(resolve("10.1.2.3")->text(), "10.1.2.3:0");
  EXPECT_EQ(resolve("fd00::5")->text(), "[fd00::5]:0");
  EXPECT_EQ(resolve("127.0.0.9")->text(), "127.0.0.9:0");
}

TEST_F(ResolveBindTest, AddressOfAnotherHostIsAnInvalidArgument) {
  EXPECT_EQ(resolve("10.9.9.9").status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(ResolveBindTest, WildcardIsRefusedEvenWithTheOption) {
  EXPECT_EQ(resolve("0.0.0.0", AddressFamily::kAny, true).status().code(), ErrorCode::kRefused);
  EXPECT_EQ(resolve("::", AddressFamily::kAny, true).status().code(), ErrorCode::kRefused);
}

TEST_F(ResolveBindTest, PublicAddressNeedsTheOption) {
  EXPECT_EQ(resolve("203.0.113.5").status().code(), ErrorCode::kRefused);
  EXPECT_TRUE(resolve("203.0.113.5", AddressFamily::kAny, true).ok());
}

TEST_F(ResolveBindTest, PrivateAddressOfAnInterfaceIsPreferred) {
  EXPECT_EQ(resolve("ens5")->host_text(), "10.1.2.3");
  EXPECT_EQ(resolve("ens5", AddressFamily::kIpv6)->host_text(), "fd00::5");
  EXPECT_EQ(resolve("ens5", AddressFamily::kIpv4, true)->host_text(), "10.1.2.3");
}

TEST_F(ResolveBindTest, InterfaceWithOnlyAPublicAddressNeedsTheOption) {
  EXPECT_EQ(resolve("wan0").status().code(), ErrorCode::kRefused);
  EXPECT_EQ(resolve("wan0", AddressFamily::kAny, true)->host_text(), "198.51.100.9");
}

TEST_F(ResolveBindTest, MissingFamilyIsAnInvalidArgument) {
  EXPECT_EQ(resolve("ens6", AddressFamily::kIpv6).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(resolve("10.1.2.3", AddressFamily::kIpv6).status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(ResolveBindTest, UnknownNameIsAnInvalidArgument) {
  EXPECT_EQ(resolve("eth9").status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(resolve("").status().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace fgsync::transport
