#include "text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace fgsync::tools {
namespace {

struct Character {
  std::size_t bytes = 0;  // 0: not UTF-8
  char32_t code = 0;
};

// The character at the start of `text`, which is not empty. RFC 3629, section 4.
Character first_character(std::string_view text) {
  const auto byte = [text](std::size_t i) -> unsigned {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {};
  char32_t code = lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kSmallest[length] || code > 0x10ffff || surrogate) return {};
  return {length, code};
}

bool steers_output(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x2028 || code == 0x2029 ||
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

void append_escaped(std::string& out, std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += "\\x";
    out += kDigits[byte >> 4];
    out += kDigits[byte & 0xf];
  }
}

std::string escape(std::string_view text, bool escape_backslash) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(character.bytes, 1));
    const bool plain = character.bytes > 0 && !steers_output(character.code) &&
                       !(escape_backslash && character.code == '\\');
    if (plain) {
      out += bytes;
    } else {
      append_escaped(out, bytes);
    }
    text.remove_prefix(bytes.size());
  }
  return out;
}

// At least two digits, and no digits behind the point that a reader would skip.
std::string scaled(double value, const char* unit) {
  char text[48];
  const char* const format = value < 9.95 ? "%.1f %s" : "%.0f %s";
  std::snprintf(text, sizeof text, format, value, unit);
  return text;
}

}  // namespace

std::string escape_name(std::string_view name) { return escape(name, true); }
std::string escape_message(std::string_view message) { return escape(message, false); }

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Character character = first_character(text);
    if (character.bytes == 0) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

std::string human_bytes(std::uint64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " B";
  constexpr std::array kUnits = {"KB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  // 999.5 would be written as 1000.
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return scaled(value, kUnits[unit]);
}

std::string human_rate(double bytes_per_second) {
  // A rate beyond 10^18 is a division by almost nothing.
  const double bounded =
      std::isfinite(bytes_per_second) ? std::clamp(bytes_per_second, 0.0, 1e18) : 0;
  return human_bytes(static_cast<std::uint64_t>(bounded)) + "/s";
}

std::string human_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) seconds = 0;
  if (seconds < 59.5) return scaled(seconds, "s");
  const auto whole = static_cast<std::uint64_t>(std::llround(std::min(seconds, 1e12)));
  char text[48];
  if (whole < 3600) {
    std::snprintf(text, sizeof text, "%um%02us", static_cast<unsigned>(whole / 60),
                  static_cast<unsigned>(whole % 60));
  } else {
    std::snprintf(text, sizeof text, "%lluh%02um", static_cast<unsigned long long>(whole / 3600),
                  static_cast<unsigned>(whole % 3600 / 60));
  }
  return text;
}

std::string counted(std::uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string iso8601(std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto milliseconds = std::chrono::floor<std::chrono::milliseconds>(time - seconds).count();
  const std::time_t clock = std::chrono::system_clock::to_time_t(seconds);
  std::tm parts{};
  ::gmtime_r(&clock, &parts);
  char text[64];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + length, sizeof text - length, ".%03dZ", static_cast<int>(milliseconds));
  return text;
}

std::string quote_words(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%";
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace fgsync::tools
