#include "transport/openssl_status.h"

#include <openssl/err.h>

namespace fgsync::transport {

void clear_openssl_errors() { ERR_clear_error(); }

std::string take_openssl_errors() {
  std::string reasons;
  while (const unsigned long error = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(error);
    if (!reasons.empty()) reasons += ", ";
    reasons += reason ? reason : "error " + std::to_string(error);
  }
  return reasons;
}

Status openssl_status(ErrorCode code, std::string_view doing) {
  std::string message(doing);
  const std::string reasons = take_openssl_errors();
  if (!reasons.empty()) message += ": " + reasons;
  return Status(code, std::move(message));
}

}  // namespace fgsync::transport
