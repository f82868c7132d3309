// Fields of a start line: " key=value key=value ...", values percent-escaped (RFC 3986
// section 2.1), so that whatever a value holds, a line has no newline, no space and no "@" inside a
// field.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "fgsync/status.h"

namespace fgsync::wire {

// Appends " key=value". A key is lower-case letters and "-".
void append_field(std::string& line, std::string_view key, std::string_view value);
void append_field(std::string& line, std::string_view key, std::uint64_t value);
void append_field(std::string& line, std::string_view key, std::span<const std::byte> value);

// Reads fields by their names, in any order; fields that nobody asks for don't matter. Like
// ByteReader it has a failed state: a field that is missing, repeated or out of bounds fails it,
// and what is read then is of no worth.
class LineFields {
 public:
  // `text` must outlive it.
  explicit LineFields(std::string_view text);

  std::uint64_t number(std::string_view key, std::uint64_t low, std::uint64_t high);
  // Visible ASCII, at most limits::kLabelBytesMax.
  std::string label(std::string_view key);
  // Anything up to `bytes_max`.
  std::string text(std::string_view key, std::size_t bytes_max);
  // Exactly out.size() bytes in hexadecimal.
  void hex(std::string_view key, std::span<std::byte> out);
  // One of the words; its index.
  template <std::size_t kCount>
  std::size_t word(std::string_view key, const std::array<std::string_view, kCount>& words) {
    const std::string_view raw = find(key);
    for (std::size_t i = 0; i < kCount; ++i) {
      if (raw == words[i]) return i;
    }
    fail(key);
    return 0;
  }

  bool ok() const { return wrong_.empty(); }
  void fail(std::string_view key) {
    if (ok()) wrong_ = key;
  }
  // kProtocolError "malformed WHAT: KEY" after a failure.
  Status status(std::string_view what) const;

 private:
  // The value as it stands in the line; fails when there is none.
  std::string_view find(std::string_view key);

  std::map<std::string_view, std::string_view> fields_;
  std::string wrong_;
};

}  // namespace fgsync::wire
