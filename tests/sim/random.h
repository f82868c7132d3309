// The one source of chance of a simulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fgsync::sim {

// SplitMix64 (Steele, Lea, Flood 2014): every seed is a good one, and the sequence is the same
// everywhere, which the standard library's distributions don't promise.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // 0 to bound - 1.
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
  std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return least + below(most - least + 1);
  }
  bool percent(std::uint64_t share) { return below(100) < share; }
  // Mostly small, now and then as large as `bound` - 1: what waits and delays look like.
  std::uint64_t skewed(std::uint64_t bound) { return below(below(bound) + 1); }
  std::vector<std::byte> bytes(std::uint64_t count) {
    std::vector<std::byte> bytes(count);
    fill(bytes);
    return bytes;
  }
  void fill(std::span<std::byte> bytes) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (i % 8 == 0) word = next();
      bytes[i] = std::byte(word >> (8 * (i % 8)));
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace fgsync::sim
