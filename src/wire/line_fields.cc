#include "wire/line_fields.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/limits.h"

namespace fgsync::wire {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

// What stands for itself in a value; everything else is escaped.
bool is_plain(char byte) {
  return ('a' <= byte && byte <= 'z') || ('A' <= byte && byte <= 'Z') ||
         ('0' <= byte && byte <= '9') ||
         std::string_view("-._:/,").find(byte) != std::string_view::npos;
}

void append_hex(std::string& text, std::byte byte) {
  text += kHexDigits[std::size_t(byte) >> 4];
  text += kHexDigits[std::size_t(byte) & 0xf];
}

// Two hexadecimal digits at the beginning of `text`.
std::optional<std::byte> parse_hex(std::string_view text) {
  if (text.size() < 2) return std::nullopt;
  const std::size_t high = kHexDigits.find(text[0]);
  const std::size_t low = kHexDigits.find(text[1]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return std::byte(high << 4 | low);
}

std::optional<std::string> unescape(std::string_view value) {
  std::string text;
  while (!value.empty()) {
    if (value.front() != '%') {
      text += value.front();
      value.remove_prefix(1);
      continue;
    }
    const auto byte = parse_hex(value.substr(1));
    if (!byte) return std::nullopt;
    text += char(*byte);
    value.remove_prefix(3);
  }
  return text;
}

}  // namespace

void append_field(std::string& line, std::string_view key, std::string_view value) {
  line += ' ';
  line += key;
  line += '=';
  for (const char byte : value) {
    if (is_plain(byte)) {
      line += byte;
    } else {
      line += '%';
      append_hex(line, std::byte(byte));
    }
  }
}

void append_field(std::string& line, std::string_view key, std::uint64_t value) {
  append_field(line, key, std::to_string(value));
}

void append_field(std::string& line, std::string_view key, std::span<const std::byte> value) {
  std::string text;
  for (const std::byte byte : value) append_hex(text, byte);
  append_field(line, key, text);
}

LineFields::LineFields(std::string_view text) {
  while (!text.empty() && ok()) {
    const std::string_view field = text.substr(0, text.find(' ', 1));
    text.remove_prefix(field.size());
    const std::size_t equals = field.find('=');
    if (field.front() != ' ' || equals == std::string_view::npos) {
      fail("not a field");
    } else if (!fields_.emplace(field.substr(1, equals - 1), field.substr(equals + 1)).second) {
      fail("repeated field");
    }
  }
}

std::string_view LineFields::find(std::string_view key) {
  const auto found = fields_.find(key);
  if (found != fields_.end()) return found->second;
  fail(key);
  return {};
}

std::uint64_t LineFields::number(std::string_view key, std::uint64_t low, std::uint64_t high) {
  const std::string_view raw = find(key);
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(raw.data(), raw.data() + raw.size(), value);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == raw.data() + raw.size();
  if (whole && low <= value && value <= high) return value;
  fail(key);
  return low;
}

std::string LineFields::text(std::string_view key, std::size_t bytes_max) {
  auto value = unescape(find(key));
  if (value && value->size() <= bytes_max) return *std::move(value);
  fail(key);
  return {};
}

std::string LineFields::label(std::string_view key) {
  std::string value = text(key, limits::kLabelBytesMax);
  const bool visible =
      std::ranges::all_of(value, [](char byte) { return '!' <= byte && byte <= '~'; });
  if (!visible) fail(key);
  return value;
}

void LineFields::hex(std::string_view key, std::span<std::byte> out) {
  const std::string_view raw = find(key);
  if (raw.size() != 2 * out.size()) return fail(key);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto byte = parse_hex(raw.substr(2 * i));
    if (!byte) return fail(key);
    out[i] = *byte;
  }
}

Status LineFields::status(std::string_view what) const {
  if (ok()) return Status();
  return Status(ErrorCode::kProtocolError, "malformed " + std::string(what) + ": " + wrong_);
}

}  // namespace fgsync::wire
