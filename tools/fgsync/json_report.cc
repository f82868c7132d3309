#include "json_report.h"

#include <nlohmann/json.hpp>

#include "fgsync/transfer.h"
#include "report_printer.h"
#include "text.h"

namespace fgsync::tools {
namespace {

using Json = nlohmann::ordered_json;

Json json_text(const std::string& text) {
  if (is_utf8(text)) return text;
  Json object;
  object["bytes_base64"] = base64(text);
  object["escaped"] = escape_name(text);
  return object;
}

const char* status_word(int exit_code) {
  switch (exit_code) {
    case 0:
      return "ok";
    case 20:
      return "cancelled";
    case 23:
    case 24:
    case 25:
      return "partial";
    default:
      return "failed";
  }
}

Json json_sources(const TransferOptions& options) {
  if (options.sources.size() == 1) return json_text(options.sources.front().display());
  Json list = Json::array();
  for (const Location& source : options.sources) list.push_back(json_text(source.display()));
  return list;
}

Json json_error(const std::string& path, ErrorCode code, const std::string& message) {
  Json error;
  error["path"] = json_text(path);
  error["code"] = error_code_name(code);
  error["message"] = is_utf8(message) ? message : escape_message(message);
  return error;
}

// The paths' errors, and why the session ended early, with an empty path.
Json json_errors(const TransferReport& report) {
  Json errors = Json::array();
  for (const ErrorEntry& entry : report.errors) {
    errors.push_back(json_error(entry.path, entry.code, entry.message));
  }
  if (!report.status.ok()) {
    errors.push_back(json_error("", report.status.code(), report.status.message()));
  }
  return errors;
}

Json json_files(const FileFigures& files) {
  return Json{{"total", files.total},         {"sent", files.sent},
              {"unchanged", files.unchanged}, {"linked", files.linked},
              {"deleted", files.deleted},     {"failed", files.failed},
              {"vanished", files.vanished}};
}

Json json_bytes(const ByteFigures& bytes) {
  return Json{{"total", bytes.total},
              {"sent", bytes.sent},
              {"resumed", bytes.resumed},
              {"unchanged", bytes.unchanged},
              {"wire", bytes.wire}};
}

Json json_stages(const TransferReport& report) {
  Json stages;
  for (std::size_t i = 0; i < kStageCount; ++i) {
    const auto stage = static_cast<Stage>(i);
    const StageFigures& figures = figures_of(report, stage);
    stages[stage_name(stage)] =
        Json{{"busy_seconds", figures.busy_seconds}, {"bytes", figures.bytes}};
  }
  return stages;
}

}  // namespace

std::string json_report(const TransferReport& report, const TransferOptions& options,
                        const std::vector<std::string>& command) {
  Json object;
  object["version"] = version_string();
  object["status"] = status_word(report.exit_code);
  object["exit_code"] = report.exit_code;
  object["command"] = json_text(quote_words(command));
  object["source"] = json_sources(options);
  object["target"] = json_text(options.target.display());
  object["started"] = iso8601(report.started);
  object["seconds"] = report.seconds;
  object["transport"] = report.transport;
  object["streams"] = report.streams;
  object["cipher"] = report.cipher;
  object["io_engine"] = report.io_engine;
  object["limited_by"] = report.limited_by;
  object["files"] = json_files(report.files);
  object["bytes"] = json_bytes(report.bytes);
  object["rate_bytes_per_second"] = report.rate_bytes_per_second();
  object["digest"] = report.digest;
  object["errors"] = json_errors(report);
  object["stages"] = json_stages(report);
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return "ok";
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kPermissionDenied:
      return "permission_denied";
    case ErrorCode::kNoSpace:
      return "no_space";
    case ErrorCode::kIoError:
      return "io_error";
    case ErrorCode::kSourceChanged:
      return "source_changed";
    case ErrorCode::kChecksumMismatch:
      return "checksum_mismatch";
    case ErrorCode::kProtocolError:
      return "protocol_error";
    case ErrorCode::kVersionMismatch:
      return "version_mismatch";
    case ErrorCode::kUnauthenticated:
      return "unauthenticated";
    case ErrorCode::kUnusable:
      return "unusable";
    case ErrorCode::kRefused:
      return "refused";
    case ErrorCode::kConnectionFailed:
      return "connection_failed";
    case ErrorCode::kConnectionLost:
      return "connection_lost";
    case ErrorCode::kConnectTimeout:
      return "connect_timeout";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kRemoteShellFailed:
      return "remote_shell_failed";
  }
  return "unknown";
}

std::string base64(std::string_view bytes) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view group = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (j < group.size() ? static_cast<unsigned char>(group[j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += j <= group.size() ? kAlphabet[bits >> (18 - 6 * j) & 0x3f] : '=';
    }
  }
  return text;
}

}  // namespace fgsync::tools
