#include "verify_report.h"

#include <algorithm>

#include "json_text.h"
#include "text.h"

namespace fgsync::tools {
namespace {

const char* what_is_wrong(DifferenceKind kind) {
  switch (kind) {
    case DifferenceKind::kMissing:
      return "missing";
    case DifferenceKind::kExtra:
      return "extra";
    case DifferenceKind::kType:
      return "type differs";
    case DifferenceKind::kSymlink:
      return "symlink differs";
    case DifferenceKind::kSize:
      return "size differs";
    case DifferenceKind::kContents:
      return "contents differ";
    case DifferenceKind::kTime:
      return "time differs";
  }
  return "differs";
}

const char* status_word(const VerifyReport& report) {
  switch (report.exit_code) {
    case 0:
      return "ok";
    case 20:
      return "cancelled";
    case 23:
    case 24:
      return "partial";
    case 40:
      return "different";
    default:
      return "failed";
  }
}

std::string in_parentheses(const VerifyReport& report, bool two_trees) {
  std::string text = counted(report.files_verified, "file", "files");
  if (two_trees) {
    text += " the same";
  } else if (report.files_extra > 0) {
    text += ", " + std::to_string(report.files_extra) + " not in the receipt";
  }
  if (report.files_failed > 0) text += ", " + std::to_string(report.files_failed) + " not readable";
  return text;
}

}  // namespace

std::string difference_line(const Difference& difference) {
  std::string line = escape_name(difference.path) + ": " + what_is_wrong(difference.kind);
  if (!difference.detail.empty()) line += ": " + escape_message(difference.detail);
  return line;
}

std::string verify_final_line(const VerifyReport& report, const Verified& verified) {
  const bool two_trees = verified.tree.empty();
  std::string line;
  if (report.differences_total > 0) {
    line = two_trees ? counted(report.differences_total, "difference", "differences")
                     : counted(report.files_different, "file differs", "files differ");
    line += "; ";
  }
  line += two_trees ? "compared " : "verified ";
  line += human_bytes(report.bytes_read) + " (" + in_parentheses(report, two_trees) + ") in " +
          human_duration(report.seconds) + ": " + human_rate(report.rate_bytes_per_second());
  return line;
}

std::vector<std::string> verify_error_lines(const VerifyReport& report, const Verified& verified,
                                            std::size_t shown_max) {
  std::vector<std::string> lines;
  const std::size_t shown = std::min(shown_max, report.errors.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const ErrorEntry& error = report.errors[i];
    std::string path = error.path;  // of two trees: whole
    if (!verified.tree.empty()) path = path.empty() ? verified.tree : verified.tree + "/" + path;
    lines.push_back("fgsyncctl: " + escape_name(path) + ": " + escape_message(error.message));
  }
  if (report.errors_total > shown) {
    lines.push_back("fgsyncctl: ... and " + std::to_string(report.errors_total - shown) + " more");
  }
  if (!report.status.ok()) {
    lines.push_back("fgsyncctl: " + escape_message(report.status.message()));
  }
  return lines;
}

std::string verify_json(const VerifyReport& report, const Verified& verified,
                        const std::vector<std::string>& command) {
  Json differences = Json::array();
  for (const Difference& difference : report.differences) {
    Json entry;
    entry["path"] = json_text(difference.path);
    entry["kind"] = difference_name(difference.kind);
    entry["message"] = difference.detail;
    differences.push_back(std::move(entry));
  }
  Json errors = Json::array();
  for (const ErrorEntry& error : report.errors) {
    errors.push_back(json_error(error.path, error.code, error.message));
  }
  if (!report.status.ok()) {
    errors.push_back(json_error("", report.status.code(), report.status.message()));
  }
  Json object;
  object["version"] = version_string();
  object["status"] = status_word(report);
  object["exit_code"] = report.exit_code;
  object["command"] = json_text(quote_words(command));
  if (verified.tree.empty()) {
    object["source"] = json_text(verified.source);
    object["target"] = json_text(verified.target);
  } else {
    object["tree"] = json_text(verified.tree);
  }
  object["started"] = iso8601(report.started);
  object["seconds"] = report.seconds;
  object["io_engine"] = report.io_engine;
  object["files"] = Json{{"verified", report.files_verified},
                         {"different", report.files_different},
                         {"extra", report.files_extra},
                         {"failed", report.files_failed}};
  object["bytes"] = Json{{"read", report.bytes_read}};
  object["rate_bytes_per_second"] = report.rate_bytes_per_second();
  object["differences_total"] = report.differences_total;
  object["differences"] = std::move(differences);
  object["errors"] = std::move(errors);
  return json_line(object);
}

}  // namespace fgsync::tools
