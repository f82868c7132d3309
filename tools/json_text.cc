#include "json_text.h"

#include <cstdint>

#include "text.h"

namespace fgsync::tools {

Json json_text(const std::string& text) {
  if (is_utf8(text)) return text;
  Json object;
  object["bytes_base64"] = base64(text);
  object["escaped"] = escape_name(text);
  return object;
}

Json json_error(const std::string& path, ErrorCode code, const std::string& message) {
  Json error;
  error["path"] = json_text(path);
  error["code"] = error_code_name(code);
  error["message"] = is_utf8(message) ? message : escape_message(message);
  return error;
}

std::string json_line(const Json& object) {
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
    case ErrorCode::kLocked:
      return "locked";
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
