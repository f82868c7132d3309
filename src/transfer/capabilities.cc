#include "fgsync/transfer.h"
#include "io/runtime.h"
#include "wire/message.h"

namespace fgsync {

std::vector<std::string> capabilities() {
  const std::string no_uring = io::uring_unavailable_reason();
  const std::string engines =
      no_uring.empty() ? "io engines: uring posix" : "io engines: posix (uring: " + no_uring + ")";
  const char* aes = io::processor_has_aes() ? "yes" : "no";
  return {
      "protocol versions: " + std::to_string(wire::kVersionMin) + " to " +
          std::to_string(wire::kVersionMax),
      engines,
      "transports: tcp",
      std::string("ciphers: aes128-gcm aes256-gcm chacha20 none (AES in hardware: ") + aes + ")",
  };
}

}  // namespace fgsync
