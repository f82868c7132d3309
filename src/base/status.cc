#include "fgsync/status.h"

#include <cerrno>
#include <cstring>

namespace fgsync {
namespace {

ErrorCode code_of_errno(int system_errno) {
  switch (system_errno) {
    case ENOENT:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
      return ErrorCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::kNoSpace;
    default:
      return ErrorCode::kIoError;
  }
}

}  // namespace

Status Status::from_errno(int system_errno, std::string_view doing) {
  char text[128];
  // GNU strerror_r returns the text, which need not be in the buffer.
  std::string message(doing);
  message += ": ";
  message += ::strerror_r(system_errno, text, sizeof text);
  return Status(code_of_errno(system_errno), std::move(message), system_errno);
}

const std::string& Status::message() const {
  static const std::string kNone;
  return state_ ? state_->message : kNone;
}

Status Status::with_context(std::string_view context) const {
  if (ok()) return Status();
  std::string message(context);
  message += ": ";
  message += state_->message;
  return Status(state_->code, std::move(message), state_->system_errno);
}

}  // namespace fgsync
