#include "base/assert.h"
#include "base/limits.h"
#include "wire/checksum.h"
#include "wire/line_fields.h"
#include "wire/start_line.h"

namespace fgsync::wire {
namespace {

// '@' opens the marker and is nowhere else in an answer line (values escape it). So at each '@',
// and only there, a new answer may begin: the scanner looks at every byte once and never goes back.
constexpr char kMarkerOpening = '@';
constexpr std::string_view kMarker = "@fgsync-answer:";
static_assert(kMarker.front() == kMarkerOpening && kMarker.rfind(kMarkerOpening) == 0);

constexpr std::string_view kCheck = " check=";
constexpr std::size_t kNoiseStartBytes = 100;
constexpr std::array<std::string_view, 2> kKinds = {"session", "refusal"};
constexpr std::array<std::string_view, 3> kChoices = {"reached", "facing", "loopback"};

std::string check_value(std::string_view line) {
  return checksum_of(std::as_bytes(std::span(line))).hex();
}

std::string with_check(std::string line) {
  const std::string check = check_value(line);
  line += kCheck;
  line += check;
  line += '\n';
  return line;
}

// A whole line, from its marker, without its newline; nullopt if it is not exactly an answer.
std::optional<StartAnswerScanner::Found> parse_answer(std::string_view line) {
  const std::size_t check_at = line.rfind(kCheck);
  if (check_at == std::string_view::npos) return std::nullopt;
  const std::string_view checked = line.substr(0, check_at);
  if (line.substr(check_at + kCheck.size()) != check_value(checked)) return std::nullopt;

  LineFields fields(checked.substr(kMarker.size()));
  StartAnswerScanner::Found found;
  if (fields.word("kind", kKinds) == 0) {
    StartAnswer answer;
    answer.address = fields.label("address");
    if (answer.address.empty()) fields.fail("address");
    answer.port = std::uint16_t(fields.number("port", 1, 0xffff));
    answer.choice = AddressChoice(fields.word("choice", kChoices));
    fields.hex("psk", answer.psk);
    fields.hex("session", answer.session_id);
    found.answer = std::move(answer);
  } else {
    StartRefusal refusal;
    refusal.exit_code = int(fields.number("exit", 1, 99));
    refusal.message = fields.text("message", limits::kErrorTextBytesMax);
    found.refusal = std::move(refusal);
  }
  if (!fields.ok()) return std::nullopt;
  return found;
}

// Inside an answer line, behind its marker.
bool is_line_byte(char byte) { return ' ' <= byte && byte <= '~'; }

}  // namespace

std::string encode(const StartAnswer& answer) {
  FGSYNC_ASSERT(!answer.address.empty() && answer.address.size() <= limits::kLabelBytesMax);
  FGSYNC_ASSERT(answer.port != 0);
  std::string line(kMarker);
  append_field(line, "kind", kKinds[0]);
  append_field(line, "address", answer.address);
  append_field(line, "port", answer.port);
  append_field(line, "choice", kChoices[std::size_t(answer.choice)]);
  append_field(line, "psk", answer.psk);
  append_field(line, "session", answer.session_id);
  return with_check(std::move(line));
}

std::string encode(const StartRefusal& refusal) {
  FGSYNC_ASSERT(1 <= refusal.exit_code && refusal.exit_code <= 99);
  std::string line(kMarker);
  append_field(line, "kind", kKinds[1]);
  append_field(line, "exit", std::uint64_t(refusal.exit_code));
  append_field(line, "message",
               std::string_view(refusal.message).substr(0, limits::kErrorTextBytesMax));
  return with_check(std::move(line));
}

Result<std::optional<StartAnswerScanner::Found>> StartAnswerScanner::feed(
    std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    if (seen_ == limits::kStartNoiseBytesMax) {
      return Status(ErrorCode::kProtocolError,
                    "no answer from the far side in its first " + std::to_string(seen_) + " bytes");
    }
    ++seen_;
    if (auto found = take(char(byte))) return found;
  }
  return std::optional<Found>();
}

std::optional<StartAnswerScanner::Found> StartAnswerScanner::take(char byte) {
  if (byte == kMarkerOpening) {
    reject_pending();
    pending_ = kMarkerOpening;
    return std::nullopt;
  }
  const bool in_marker = pending_.size() < kMarker.size();
  if (byte == '\n') {
    if (!in_marker) {
      if (auto found = parse_answer(pending_)) {
        pending_.clear();
        return found;
      }
    }
    reject_pending();
    hidden_ = false;
    add_noise("\n");
    return std::nullopt;
  }
  const bool fits = in_marker
                        ? !pending_.empty() && byte == kMarker[pending_.size()]
                        : is_line_byte(byte) && pending_.size() < limits::kStartAnswerBytesMax;
  if (fits) {
    pending_ += byte;
  } else {
    reject_pending();
    add_noise(std::string_view(&byte, 1));
  }
  return std::nullopt;
}

// What looked like the beginning of an answer is none.
void StartAnswerScanner::reject_pending() {
  if (pending_.size() < kMarker.size()) {
    add_noise(pending_);
  } else {
    add_noise(kMarker);
    hidden_ = true;
  }
  pending_.clear();
}

void StartAnswerScanner::add_noise(std::string_view bytes) {
  if (!hidden_) noise_start_ += bytes.substr(0, kNoiseStartBytes - noise_start_.size());
}

}  // namespace fgsync::wire
