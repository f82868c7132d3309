#include "json_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "json_text.h"

namespace fgsync::tools {
namespace {

using nlohmann::json;

TransferOptions options_of(const std::string& source, const std::string& target) {
  TransferOptions options;
  options.sources = {*parse_location(source)};
  options.target = *parse_location(target);
  return options;
}

std::set<std::string> keys_of(const json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

TEST(JsonReport, HasExactlyTheKeysOfTheContract) {
  const json object =
      json::parse(json_report(TransferReport{}, options_of("a", "h:b"), {"fgsync", "a", "h:b"}));
  EXPECT_EQ(keys_of(object),
            (std::set<std::string>{"version", "status", "exit_code", "command", "source", "target",
                                   "started", "seconds", "transport", "streams", "cipher",
                                   "io_engine", "limited_by", "files", "bytes",
                                   "rate_bytes_per_second", "digest", "errors", "stages"}));
  EXPECT_EQ(keys_of(object["files"]), (std::set<std::string>{"total", "sent", "unchanged", "linked",
                                                             "deleted", "failed", "vanished"}));
  EXPECT_EQ(keys_of(object["bytes"]),
            (std::set<std::string>{"total", "sent", "resumed", "unchanged", "wire"}));
  EXPECT_EQ(keys_of(object["stages"]),
            (std::set<std::string>{"read", "hash", "encrypt", "send", "receive", "decrypt",
                                   "verify", "write", "sync"}));
  EXPECT_EQ(keys_of(object["stages"]["sync"]), (std::set<std::string>{"busy_seconds", "bytes"}));
  EXPECT_EQ(object["command"], "fgsync a h:b");
  EXPECT_EQ(object["source"], "a");
  EXPECT_EQ(object["target"], "h:b");
  EXPECT_EQ(object["version"], "0.1.0");
  EXPECT_TRUE(object["streams"].is_number());
}

TEST(JsonReport, SaysThatNothingWasMadeDurable) {
  TransferOptions options = options_of("a", "b");
  options.durability = Durability::kNone;
  EXPECT_EQ(json::parse(json_report(TransferReport{}, options, {}))["durability"], "none");
  options.durability = Durability::kFull;
  EXPECT_FALSE(json::parse(json_report(TransferReport{}, options, {})).contains("durability"));
}

TEST(JsonReport, StatusFollowsTheExitCode) {
  const std::pair<int, const char*> table[] = {{0, "ok"},         {1, "failed"},   {10, "failed"},
                                               {20, "cancelled"}, {23, "partial"}, {24, "partial"},
                                               {25, "partial"},   {30, "failed"},  {255, "failed"}};
  for (const auto& [code, word] : table) {
    TransferReport report;
    report.exit_code = code;
    EXPECT_EQ(json::parse(json_report(report, options_of("a", "b"), {}))["status"], word);
  }
}

TEST(JsonReport, SeveralSourcesAreAnArray) {
  TransferOptions options = options_of("a", "h:b");
  options.sources.push_back(*parse_location("./c:d"));
  EXPECT_EQ(json::parse(json_report(TransferReport{}, options, {}))["source"],
            (json{"a", "./c:d"}));
}

TEST(JsonReport, ErrorsHoldEveryPathAndTheSessionsEnd) {
  TransferReport report;
  report.errors = {{"x\ny", ErrorCode::kSourceChanged, "reading: changed"},
                   {"caf\xe9", ErrorCode::kPermissionDenied, "opening caf\xe9"}};
  report.status = Status(ErrorCode::kConnectionLost, "lost");
  const json errors = json::parse(json_report(report, options_of("a", "b"), {}))["errors"];
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_EQ(errors[0]["path"], "x\ny");
  EXPECT_EQ(errors[0]["code"], "source_changed");
  // printf 'caf\351' | base64
  EXPECT_EQ(errors[1]["path"], (json{{"bytes_base64", "Y2Fm6Q=="}, {"escaped", "caf\\xe9"}}));
  EXPECT_EQ(errors[1]["message"], "opening caf\\xe9");
  EXPECT_EQ(errors[2]["path"], "");
  EXPECT_EQ(errors[2]["code"], "connection_lost");
}

TEST(JsonReport, IsOneLine) {
  const std::string text =
      json_report(TransferReport{}, options_of("a\nb", "b"), {"fgsync", "a\nb"});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_TRUE(text.ends_with("}\n"));
}

TEST(Base64, AgreesWithTheVectorsOfRfc4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

}  // namespace
}  // namespace fgsync::tools
