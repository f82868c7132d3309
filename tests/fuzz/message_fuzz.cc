// decode_message() on hostile bytes: what it accepts is exactly what encode() makes.
#include <algorithm>

#include "base/assert.h"
#include "fuzz/fuzz_target.h"
#include "wire/message.h"
#include "wire/message_samples.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t length) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(input, length));
  const auto message = fgsync::wire::decode_message(bytes);
  if (!message.ok()) {
    FGSYNC_ASSERT(message.status().code() == fgsync::ErrorCode::kProtocolError);
    return 0;
  }
  FGSYNC_ASSERT(std::ranges::equal(fgsync::wire::encode(*message), bytes));
  return 0;
}

std::vector<std::vector<std::byte>> fgsync::fuzz::valid_samples() {
  std::vector<std::vector<std::byte>> samples;
  for (const wire::Message& message : wire::sample_messages()) {
    samples.push_back(wire::encode(message));
  }
  return samples;
}
