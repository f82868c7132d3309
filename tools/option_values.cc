#include "option_values.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace fgsync::tools {
namespace {

Status expected(const char* what) {
  return Status(ErrorCode::kInvalidArgument, std::string("expected ") + what);
}

std::string lower_case(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lowered;
}

// Digits, with a fraction perhaps, and what follows them.
struct Quantity {
  double number;
  std::string unit;  // in lower case
};

std::optional<Quantity> split_quantity(std::string_view text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  double number = 0;
  const auto [stop, error] =
      std::from_chars(text.data(), text.data() + end, number, std::chars_format::fixed);
  const bool starts_with_digit = end > 0 && text.front() != '.';
  if (error != std::errc() || stop != text.data() + end || !starts_with_digit) return std::nullopt;
  return Quantity{number, lower_case(text.substr(end))};
}

// The factor of a unit of bytes, or 0.
double bytes_of_unit(std::string_view unit) {
  if (unit.empty() || unit == "b") return 1;
  constexpr std::string_view kPrefixes = "kmgt";
  const std::size_t power = kPrefixes.find(unit.front());
  if (power == std::string_view::npos) return 0;
  const std::string_view rest = unit.substr(1);
  if (rest.empty() || rest == "ib") return std::pow(1024.0, double(power + 1));
  return rest == "b" ? std::pow(1000.0, double(power + 1)) : 0;
}

// The factor of a unit of bits, or 0.
double bytes_of_bit_unit(std::string_view unit) {
  constexpr std::array kUnits = {"bit", "kbit", "mbit", "gbit", "tbit"};
  for (std::size_t power = 0; power < kUnits.size(); ++power) {
    if (unit == kUnits[power]) return std::pow(1000.0, double(power)) / 8;
  }
  return 0;
}

std::optional<std::uint64_t> to_bytes(double number, double factor) {
  constexpr double kLimit = 9.2e18;  // below 2^63
  const double bytes = number * factor;
  if (factor <= 0 || !(bytes < kLimit)) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

template <typename Value, std::size_t count>
Result<Value> choose(std::string_view text,
                     const std::pair<std::string_view, Value> (&table)[count], const char* what) {
  for (const auto& [word, value] : table) {
    if (word == text) return value;
  }
  return expected(what);
}

}  // namespace

Result<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t count = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || stop != text.data() + text.size()) return expected("a whole number");
  return count;
}

Result<std::uint64_t> parse_size(std::string_view text) {
  const std::optional<Quantity> quantity = split_quantity(text);
  if (quantity) {
    if (const auto bytes = to_bytes(quantity->number, bytes_of_unit(quantity->unit))) return *bytes;
  }
  return expected("a size as 4096, 64K, 4M, 1.5G (1024) or 10MB (1000)");
}

Result<std::uint64_t> parse_rate(std::string_view text) {
  if (text.ends_with("/s")) text.remove_suffix(2);
  const std::optional<Quantity> quantity = split_quantity(text);
  if (quantity) {
    const double bit_factor = bytes_of_bit_unit(quantity->unit);
    const double factor = bit_factor > 0 ? bit_factor : bytes_of_unit(quantity->unit);
    const auto bytes = to_bytes(quantity->number, factor);
    if (bytes && (*bytes > 0 || quantity->number == 0)) return *bytes;
  }
  return expected("a rate as 50M, 100MB (bytes per second) or 10Gbit");
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  constexpr const char* kForm = "a duration as 30s, 5m, 2h";
  constexpr std::pair<std::string_view, std::uint64_t> kUnits[] = {
      {"ms", 1}, {"", 1000}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  constexpr std::uint64_t kLongest = std::uint64_t{100} * 365 * 86'400'000;  // a century

  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const Result<std::uint64_t> count = parse_count(text.substr(0, end));
  const Result<std::uint64_t> unit = choose(text.substr(end), kUnits, kForm);
  if (!count.ok() || !unit.ok()) return expected(kForm);
  if (*count > kLongest / *unit) return expected("a duration of at most a century");
  return std::chrono::milliseconds(static_cast<std::int64_t>(*count * *unit));
}

Result<PortRange> parse_ports(std::string_view text) {
  constexpr const char* kForm = "a port N or a range LO-HI, 1 to 65535";
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint16_t>::max();
  const std::size_t dash = text.find('-');
  const Result<std::uint64_t> low = parse_count(text.substr(0, dash));
  if (!low.ok()) return expected(kForm);
  std::uint64_t high_port = *low;
  if (dash != std::string_view::npos) {
    const Result<std::uint64_t> high = parse_count(text.substr(dash + 1));
    if (!high.ok()) return expected(kForm);
    high_port = *high;
  }
  if (*low < 1 || high_port > kLast || *low > high_port) return expected(kForm);
  return PortRange{static_cast<std::uint16_t>(*low), static_cast<std::uint16_t>(high_port)};
}

Result<bool> parse_switch(std::string_view text) {
  constexpr std::pair<std::string_view, bool> kWords[] = {
      {"true", true},   {"yes", true}, {"on", true},   {"1", true},
      {"false", false}, {"no", false}, {"off", false}, {"0", false}};
  return choose(lower_case(text), kWords, "true or false");
}

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool blank = c == ' ' || c == '\t' || c == '\n';
    if (quote == 0 && blank) {
      if (word) words.push_back(std::move(*word));
      word.reset();
      continue;
    }
    if (!word) word.emplace();
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else if (c == '\\' && quote != '\'') {
      if (++i == text.size()) return expected("a character after the backslash");
      *word += text[i];
    } else {
      *word += c;
    }
  }
  if (quote != 0) return expected("a closing quote");
  if (word) words.push_back(std::move(*word));
  return words;
}

Result<IoEngine> parse_io_engine(std::string_view text) {
  constexpr std::pair<std::string_view, IoEngine> kWords[] = {
      {"auto", IoEngine::kAuto}, {"uring", IoEngine::kUring}, {"posix", IoEngine::kPosix}};
  return choose(text, kWords, "auto, uring or posix");
}

Result<DirectIo> parse_direct_io(std::string_view text) {
  constexpr std::pair<std::string_view, DirectIo> kWords[] = {
      {"auto", DirectIo::kAuto}, {"always", DirectIo::kAlways}, {"never", DirectIo::kNever}};
  return choose(text, kWords, "auto, always or never");
}

Result<Transport> parse_transport(std::string_view text) {
  constexpr std::pair<std::string_view, Transport> kWords[] = {
      {"auto", Transport::kAuto}, {"tcp", Transport::kTcp}, {"rdma", Transport::kRdma}};
  return choose(text, kWords, "auto, tcp or rdma");
}

Result<Cipher> parse_cipher(std::string_view text) {
  constexpr std::pair<std::string_view, Cipher> kWords[] = {{"auto", Cipher::kAuto},
                                                            {"aes128-gcm", Cipher::kAes128Gcm},
                                                            {"aes256-gcm", Cipher::kAes256Gcm},
                                                            {"chacha20", Cipher::kChaCha20Poly1305},
                                                            {"none", Cipher::kNone}};
  return choose(text, kWords, "auto, aes128-gcm, aes256-gcm, chacha20 or none");
}

Result<bool> parse_publish(std::string_view text) {
  constexpr std::pair<std::string_view, bool> kWords[] = {{"file", false}, {"tree", true}};
  return choose(text, kWords, "file or tree");
}

Result<Durability> parse_durability(std::string_view text) {
  constexpr std::pair<std::string_view, Durability> kWords[] = {
      {"none", Durability::kNone}, {"batch", Durability::kBatch}, {"full", Durability::kFull}};
  return choose(text, kWords, "none, batch or full");
}

Result<bool> parse_verify(std::string_view text) {
  constexpr std::pair<std::string_view, bool> kWords[] = {{"wire", false}, {"readback", true}};
  return choose(text, kWords, "wire or readback");
}

}  // namespace fgsync::tools
