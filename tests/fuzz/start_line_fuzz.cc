// The start lines: a request that is accepted survives another round trip, and the scanner finds
// the same whatever way its input is cut.
#include <algorithm>
#include <string>

#include "base/assert.h"
#include "fuzz/fuzz_target.h"
#include "wire/start_line.h"

namespace fgsync::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return Bytes(bytes.begin(), bytes.end());
}

void check_request(const std::string& line) {
  const auto request = wire::decode_start_request(line);
  if (!request.ok()) {
    FGSYNC_ASSERT(request.status().code() == ErrorCode::kProtocolError);
    return;
  }
  const std::string again = wire::encode(*request);
  const auto same = wire::decode_start_request(again);
  FGSYNC_ASSERT(same.ok());
  FGSYNC_ASSERT(wire::encode(*same) == again);
}

// What the scanner finds when the bytes come in pieces: the line that would say the same, or
// nothing.
std::string scan(std::span<const std::byte> bytes, std::size_t piece) {
  wire::StartAnswerScanner scanner;
  while (!bytes.empty()) {
    const auto result = scanner.feed(bytes.first(std::min(piece, bytes.size())));
    FGSYNC_ASSERT(result.ok());
    FGSYNC_ASSERT(scanner.noise_start().size() <= 100);
    if (result->has_value()) {
      const auto& found = **result;
      FGSYNC_ASSERT(found.answer.has_value() != found.refusal.has_value());
      return found.answer ? wire::encode(*found.answer) : wire::encode(*found.refusal);
    }
    bytes = bytes.subspan(std::min(piece, bytes.size()));
  }
  return {};
}

wire::StartAnswer sample_answer() {
  wire::StartAnswer answer;
  answer.address = "10.0.0.5";
  answer.port = 4711;
  answer.psk.fill(std::byte{0x5a});
  return answer;
}

}  // namespace

std::vector<Bytes> valid_samples() {
  wire::StartRequest request;
  request.version_min = request.version_max = 1;
  request.facing = "192.168.7.1";
  const std::string answer = wire::encode(sample_answer());
  const std::string refusal = wire::encode(wire::StartRefusal{12, "cannot listen @ all"});
  return {bytes_of(wire::encode(request)), bytes_of(answer), bytes_of("banner\n" + refusal),
          bytes_of(answer.substr(0, answer.size() / 2) + answer)};
}

}  // namespace fgsync::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t length) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(input, length));
  fgsync::fuzz::check_request(std::string(reinterpret_cast<const char*>(input), length));
  const std::string whole = fgsync::fuzz::scan(bytes, length + 1);
  for (const std::size_t piece : {1u, 13u}) {
    FGSYNC_ASSERT(fgsync::fuzz::scan(bytes, piece) == whole);
  }
  // What stood in front must not hide an answer behind it.
  const std::string line = fgsync::wire::encode(fgsync::fuzz::sample_answer());
  auto followed = std::vector<std::byte>(bytes.begin(), bytes.end());
  const auto line_bytes = fgsync::fuzz::bytes_of(line);
  followed.insert(followed.end(), line_bytes.begin(), line_bytes.end());
  FGSYNC_ASSERT(fgsync::fuzz::scan(followed, followed.size()) == (whole.empty() ? line : whole));
  return 0;
}
