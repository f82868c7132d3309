// Runs a fuzz target over seeded mutations of its valid samples and over random bytes: enough to
// run always, and to repeat a failure. The same targets link with libFuzzer (-fsanitize=fuzzer) in
// place of this file.
//
// usage: TARGET [ITERATIONS [SEED]]
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "fuzz/fuzz_target.h"

namespace fgsync::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kRandomBytesMax = 256;

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed), samples_(valid_samples()) {}

  // One in eight inputs is random, one in sixteen a valid one as it is.
  Bytes next() {
    if (below(8) == 0) return random_bytes(below(kRandomBytesMax));
    Bytes bytes = samples_[below(samples_.size())];
    for (std::size_t changes = below(16) == 0 ? 0 : 1 + below(4); changes > 0; --changes) {
      change(bytes);
    }
    return bytes;
  }

 private:
  std::size_t below(std::size_t bound) { return std::size_t(random_() % bound); }

  Bytes random_bytes(std::size_t length) {
    Bytes bytes(length);
    std::ranges::generate(bytes, [this] { return std::byte(below(256)); });
    return bytes;
  }

  void change(Bytes& bytes) {
    static constexpr std::array kEdges = {0x00, 0x01, 0x02, 0x03, 0x7f, 0x80, 0xff};
    if (bytes.empty()) bytes = random_bytes(1);
    const std::size_t at = below(bytes.size());
    const auto place = bytes.begin() + std::ptrdiff_t(at);
    switch (below(7)) {
      case 0:
        *place = std::byte(below(256));
        break;
      case 1:
        *place = std::byte(kEdges[below(kEdges.size())]);
        break;
      case 2:
        *place ^= std::byte(1u << below(8));
        break;
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.erase(place,
                    place + std::ptrdiff_t(1 + below(std::min<std::size_t>(8, bytes.size() - at))));
        break;
      case 5: {
        const Bytes inserted = random_bytes(1 + below(8));
        bytes.insert(place, inserted.begin(), inserted.end());
        break;
      }
      default: {
        // The end of another sample, so that what is valid alone meets in new places.
        const Bytes& other = samples_[below(samples_.size())];
        bytes.resize(at);
        bytes.insert(bytes.end(), other.begin() + std::ptrdiff_t(below(other.size() + 1)),
                     other.end());
        break;
      }
    }
  }

  std::mt19937_64 random_;
  const std::vector<Bytes> samples_;
};

void run(const Bytes& bytes) {
  // Memory of exactly this length, so that the sanitizer sees a byte read too many.
  const auto exact = std::make_unique<std::uint8_t[]>(bytes.size());
  std::ranges::transform(bytes, exact.get(), [](std::byte byte) { return std::uint8_t(byte); });
  LLVMFuzzerTestOneInput(exact.get(), bytes.size());
}

}  // namespace
}  // namespace fgsync::fuzz

int main(int argument_count, char** arguments) {
  const std::uint64_t iterations =
      argument_count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 10'000;
  const std::uint64_t seed = argument_count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
  std::printf("%llu iterations, seed %llu\n", static_cast<unsigned long long>(iterations),
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  for (const auto& sample : fgsync::fuzz::valid_samples()) fgsync::fuzz::run(sample);
  fgsync::fuzz::Mutator mutator(seed);
  for (std::uint64_t i = 0; i < iterations; ++i) fgsync::fuzz::run(mutator.next());
  return 0;
}
