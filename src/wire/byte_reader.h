// Reads what ByteWriter wrote, from a peer that is not trusted. The first thing that does not fit
// puts the reader into a failed state, in which everything reads as zero or empty: callers read a
// whole value straight through and ask once at its end. It never reads past its bytes, and it
// allocates nothing that is not there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fgsync/status.h"
#include "wire/checksum.h"

namespace fgsync::wire {

inline std::uint64_t load_little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::uint64_t(bytes[i]);
  return value;
}

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::uint8_t u8() { return std::uint8_t(number(1)); }
  std::uint16_t u16() { return std::uint16_t(number(2)); }
  std::uint32_t u32() { return std::uint32_t(number(4)); }
  std::uint64_t u64() { return number(8); }
  std::int64_t i64() { return std::int64_t(number(8)); }
  // 0 or 1, nothing else.
  bool boolean() { return ranged(u8(), 0, 1, "neither true nor false") == 1; }

  // An enumerator stored in one byte, within first..last.
  template <typename Enumeration>
  Enumeration enumerator(Enumeration first, Enumeration last) {
    const std::uint64_t value =
        ranged(u8(), std::uint64_t(first), std::uint64_t(last), "unknown enumerator");
    return ok() ? Enumeration(value) : first;
  }

  // The value if it lies within the bounds; else fails for that reason and gives `low`.
  std::uint64_t ranged(std::uint64_t value, std::uint64_t low, std::uint64_t high,
                       const char* reason) {
    require(low <= value && value <= high, reason);
    return ok() ? value : low;
  }

  // The next `length` bytes, in place; empty after a failure.
  std::span<const std::byte> bytes(std::size_t length) {
    require(length <= rest_.size(), "cut short");
    if (!ok()) return {};
    const auto taken = rest_.first(length);
    rest_ = rest_.subspan(length);
    return taken;
  }

  Checksum checksum() {
    Checksum value;
    std::ranges::copy(bytes(kChecksumBytes), value.bytes.begin());
    return value;
  }

  // A string of at most `bytes_max`.
  std::string string(std::size_t bytes_max) {
    const std::uint64_t length = ranged(u32(), 0, bytes_max, "string too long");
    const auto taken = bytes(length);
    return std::string(reinterpret_cast<const char*>(taken.data()), taken.size());
  }

  // The number of elements that follow: at most `max`, and no more than could be left at their
  // smallest.
  std::size_t count(std::size_t max, std::size_t element_bytes_min) {
    const std::uint64_t value = ranged(u32(), 0, max, "too many elements");
    require(value <= rest_.size() / element_bytes_min, "cut short");
    return ok() ? value : 0;
  }

  // Fails unless the condition holds; the first reason is kept. `reason` must outlive the reader (a
  // literal).
  void require(bool condition, const char* reason) {
    if (!condition && reason_ == nullptr) reason_ = reason;
  }
  bool ok() const { return reason_ == nullptr; }

  // To be asked at the end: OK when nothing failed and nothing is left over, else kProtocolError
  // saying "malformed WHAT: reason".
  Status finish(std::string_view what) {
    require(rest_.empty(), "longer than it should be");
    if (ok()) return Status();
    return Status(ErrorCode::kProtocolError,
                  "malformed " + std::string(what) + ": " + std::string(reason_));
  }

 private:
  std::uint64_t number(std::size_t width) { return load_little_endian(bytes(width)); }

  std::span<const std::byte> rest_;
  const char* reason_ = nullptr;
};

}  // namespace fgsync::wire
