// Builds messages: fixed-width little-endian numbers and length-prefixed strings, appended to a
// vector.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace fgsync::wire {

// Stores the low `out.size()` bytes of a number, least significant first.
inline void store_little_endian(std::span<std::byte> out, std::uint64_t value) {
  for (std::byte& byte : out) {
    byte = std::byte(value & 0xff);
    value >>= 8;
  }
}

class ByteWriter {
 public:
  void u8(std::uint8_t value) { number(value, 1); }
  void u16(std::uint16_t value) { number(value, 2); }
  void u32(std::uint32_t value) { number(value, 4); }
  void u64(std::uint64_t value) { number(value, 8); }
  void i64(std::int64_t value) { number(std::uint64_t(value), 8); }
  void boolean(bool value) { u8(value ? 1 : 0); }
  void bytes(std::span<const std::byte> value);

  // Length (4 bytes), then the bytes, whole whatever their length: for names and paths, which mean
  // something else when cut.
  void string(std::string_view value) {
    u32(std::uint32_t(value.size()));
    bytes(std::as_bytes(std::span(value)));
  }
  // The same, cut at a bound: for texts that people read.
  void text(std::string_view value, std::size_t bytes_max) {
    string(value.substr(0, std::min(value.size(), bytes_max)));
  }

  std::span<const std::byte> written() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void number(std::uint64_t value, std::size_t width);

  std::vector<std::byte> bytes_;
};

}  // namespace fgsync::wire
