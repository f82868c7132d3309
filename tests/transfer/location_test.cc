// Locations against the table of the manual, and the spellings that look like a mistake.
#include <gtest/gtest.h>

#include <string>

#include "fgsync/options.h"

namespace fgsync {
namespace {

struct Expected {
  std::string text;
  std::string user;
  std::string host;
  std::string path;
};

TEST(Location, ReadsEveryFormOfTheManual) {
  const Expected table[] = {
      {"/data/ckpt", "", "", "/data/ckpt"},
      {"data/ckpt/", "", "", "data/ckpt/"},
      {"-", "", "", "-"},
      {"./a:b", "", "", "./a:b"},
      {"/x/a:b", "", "", "/x/a:b"},
      {"../[::1]:x", "", "", "../[::1]:x"},
      {"[backup]", "", "", "[backup]"},
      {"node7:/data", "", "node7", "/data"},
      {"node7:data/", "", "node7", "data/"},
      {"node7:", "", "node7", "."},
      {"ada@node7:x:y", "ada", "node7", "x:y"},
      {"ada@corp.example@node7:/x", "ada@corp.example", "node7", "/x"},
      {"10.1.2.3:/x", "", "10.1.2.3", "/x"},
      {"[::1]:/x", "", "::1", "/x"},
      {"[::1]:", "", "::1", "."},
      {"ada@[::1]:/x", "ada", "::1", "/x"},
      {"[fe80::1%ens6]:p", "", "fe80::1%ens6", "p"},
      {"ada@[fe80::1%ens6]:p/", "ada", "fe80::1%ens6", "p/"},
      {"dead:beef", "", "dead", "beef"},
  };
  for (const Expected& expected : table) {
    const Result<Location> location = parse_location(expected.text);
    ASSERT_TRUE(location.ok()) << expected.text << ": " << location.status().message();
    EXPECT_EQ(location->user, expected.user) << expected.text;
    EXPECT_EQ(location->host, expected.host) << expected.text;
    EXPECT_EQ(location->path, expected.path) << expected.text;
    EXPECT_EQ(location->is_remote(), !expected.host.empty()) << expected.text;
  }
}

TEST(Location, WhatLooksLikeAMistakeIsRefusedAsUsage) {
  const char* const mistakes[] = {
      "",
      ":path",
      ":/path",
      "@host:/x",
      "ada@:/x",
      "[::1:/x",
      "[::1]/x:y",
      "[::1]x:/y",
      "[node7]:/x",
      "[]:/x",
      "[fe80::1%]:/x",
      "a[b:c",
      "-oProxyCommand=touch:/x",
      "-l@host:/x",
      "no de:/x",
      "no\nde:/x",
      "$(id):/x",
      "host::module/x",
      "[::1%a b]:/x",
      "u;v@h:/x",
  };
  for (const char* text : mistakes) {
    const Result<Location> location = parse_location(text);
    ASSERT_FALSE(location.ok()) << text;
    EXPECT_EQ(location.status().code(), ErrorCode::kInvalidArgument) << text;
  }
}

TEST(Location, ABareIpv6AddressIsAskedToTakeBrackets) {
  for (const char* text : {"::1:/x", "::1", "fe80::1:/x", "ada@::1:/x", "fe80::1%ens6:/x",
                           "2001:db8::7:x", "1:2:3:4:5:6:7:8:/x"}) {
    const Result<Location> location = parse_location(text);
    ASSERT_FALSE(location.ok()) << text;
    EXPECT_EQ(location.status().code(), ErrorCode::kInvalidArgument) << text;
    EXPECT_NE(location.status().message().find("brackets"), std::string::npos) << text;
  }
}

TEST(Location, AStandingDaemonIsUnsupported) {
  const Result<Location> location = parse_location("fgsync://node7:8730/x");
  ASSERT_FALSE(location.ok());
  EXPECT_EQ(location.status().code(), ErrorCode::kUnsupported);
}

TEST(Location, DisplayIsReadBackAsTheSameLocation) {
  for (const char* text : {"/data/ckpt", "./a:b", "node7:/data/", "ada@node7:x:y", "[::1]:/x",
                           "ada@[fe80::1%ens6]:p"}) {
    const Result<Location> location = parse_location(text);
    ASSERT_TRUE(location.ok()) << text;
    EXPECT_EQ(location->display(), text);
  }
  Location colon_in_name;
  colon_in_name.path = "a:b";
  EXPECT_EQ(colon_in_name.display(), "./a:b");
}

}  // namespace
}  // namespace fgsync
