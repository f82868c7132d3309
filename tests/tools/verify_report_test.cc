#include "verify_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

namespace fgsync::tools {
namespace {

using nlohmann::json;

VerifyReport sample() {
  VerifyReport report;
  report.seconds = 2;
  report.files_verified = 39;
  report.bytes_read = 3'000'000'000;
  return report;
}

Verified one_tree() { return {.tree = "tree", .source = {}, .target = {}}; }
Verified two_trees() { return {.tree = {}, .source = "h:a", .target = "b"}; }

TEST(VerifyReport, DifferencesAreOneEscapedLineEach) {
  EXPECT_EQ(difference_line({DifferenceKind::kMissing, "a\n\x1b[31m\\", ""}),
            "a\\x0a\\x1b[31m\\x5c: missing");
  EXPECT_EQ(difference_line({DifferenceKind::kContents, "\xff", ""}), "\\xff: contents differ");
  EXPECT_EQ(difference_line({DifferenceKind::kSize, "d/f", "1 bytes instead of 2"}),
            "d/f: size differs: 1 bytes instead of 2");
  EXPECT_EQ(difference_line({DifferenceKind::kSymlink, "l", "to \x1b instead of b\n"}),
            "l: symlink differs: to \\x1b instead of b\\x0a");
  EXPECT_EQ(difference_line({DifferenceKind::kExtra, "d", "a directory"}), "d: extra: a directory");
}

TEST(VerifyReport, TheLastLineTellsWhatWasDoneAndFound) {
  VerifyReport report = sample();
  EXPECT_EQ(verify_final_line(report, one_tree()), "verified 3.0 GB (39 files) in 2.0 s: 1.5 GB/s");
  report.files_extra = 2;
  report.files_failed = 1;
  report.files_different = 1;
  report.differences_total = 2;
  EXPECT_EQ(
      verify_final_line(report, two_trees()),
      "2 differences; compared 3.0 GB (39 files the same, 1 not readable) in 2.0 s: 1.5 GB/s");
  EXPECT_EQ(verify_final_line(report, one_tree()),
            "1 file differs; verified 3.0 GB (39 files, 2 not in the receipt, 1 not readable) in "
            "2.0 s: 1.5 GB/s");
}

TEST(VerifyReport, ErrorsAreLinesWithTheTreeInFrontAndACount) {
  VerifyReport report = sample();
  report.errors = {{"a\n", ErrorCode::kIoError, "reading: Input/output error"},
                   {"b", ErrorCode::kIoError, "reading: Input/output error"}};
  report.errors_total = 5;
  report.status = Status(ErrorCode::kUnusable, "tree: why");
  EXPECT_EQ(verify_error_lines(report, one_tree(), 1),
            (std::vector<std::string>{"fgsyncctl: tree/a\\x0a: reading: Input/output error",
                                      "fgsyncctl: ... and 4 more", "fgsyncctl: tree: why"}));
}

TEST(VerifyReport, ErrorsOfTwoTreesHaveTheirWholePaths) {
  VerifyReport report = sample();
  report.errors = {{"/a/b", ErrorCode::kIoError, "reading: Input/output error"}};
  report.errors_total = 1;
  EXPECT_EQ(verify_error_lines(report, two_trees(), 20),
            (std::vector<std::string>{"fgsyncctl: /a/b: reading: Input/output error"}));
}

TEST(VerifyReport, TheObjectOfTwoTreesNamesBoth) {
  const json object = json::parse(verify_json(sample(), two_trees(), {"fgsyncctl"}));
  EXPECT_EQ(object["source"], "h:a");
  EXPECT_EQ(object["target"], "b");
  EXPECT_FALSE(object.contains("tree"));
}

TEST(VerifyReport, TheObjectHasTheKeysOfTheManual) {
  VerifyReport report = sample();
  report.exit_code = 40;
  report.differences = {{DifferenceKind::kTime, "caf\xe9", "then instead of now"}};
  report.differences_total = 1;
  report.errors = {{"f", ErrorCode::kPermissionDenied, "opening: Permission denied"}};
  const std::string line = verify_json(report, one_tree(), {"fgsyncctl", "verify", "tree"});
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const json object = json::parse(line);
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  EXPECT_EQ(keys, (std::set<std::string>{"version", "status", "exit_code", "command", "tree",
                                         "started", "seconds", "io_engine", "files", "bytes",
                                         "rate_bytes_per_second", "differences_total",
                                         "differences", "errors"}));
  EXPECT_EQ(object["status"], "different");
  EXPECT_EQ(object["files"],
            (json{{"verified", 39}, {"different", 0}, {"extra", 0}, {"failed", 0}}));
  // printf 'caf\351' | base64
  EXPECT_EQ(object["differences"],
            (json::array({{{"path", {{"bytes_base64", "Y2Fm6Q=="}, {"escaped", "caf\\xe9"}}},
                           {"kind", "time"},
                           {"message", "then instead of now"}}})));
  EXPECT_EQ(object["errors"][0]["code"], "permission_denied");
}

}  // namespace
}  // namespace fgsync::tools
