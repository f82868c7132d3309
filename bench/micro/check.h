// What every micro-benchmark needs besides Google Benchmark: contents to work on, and an end at
// once when a result is wrong, so that none measures something that does not work.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace fgsync::bench {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "wrong result: %s\n", what);
  std::_Exit(1);  // other threads may be at work
}

// Bytes that tell their place; byte i is i * 167 + i / 256 * 13 + 7 modulo 256, and `salt` more.
inline std::vector<std::byte> contents(std::size_t size, std::size_t salt = 0) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = std::byte(i * 167 + (i >> 8) * 13 + 7 + salt);
  return bytes;
}

}  // namespace fgsync::bench
