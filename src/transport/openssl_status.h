// OpenSSL's error queue as a Status. The queue belongs to the thread and keeps what earlier calls
// left in it, so whoever reports from it calls clear_openssl_errors() before the call that may
// fail.
#pragma once

#include <string>
#include <string_view>

#include "fgsync/status.h"

namespace fgsync::transport {

void clear_openssl_errors();
// The reasons queued on this thread, outermost last, or empty; empties the queue.
std::string take_openssl_errors();
// "`doing`: reasons".
Status openssl_status(ErrorCode code, std::string_view doing);

}  // namespace fgsync::transport
