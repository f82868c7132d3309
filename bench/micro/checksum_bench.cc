// The checksum of a chunk: at once, and in the pieces in which it is summed in the cache.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "check.h"
#include "wire/checksum.h"

namespace fgsync::bench {
namespace {

constexpr std::size_t kPieceBytes = 256 * limits::kKiB;

// By xxhsum -H2 of the same bytes.
constexpr std::pair<std::size_t, std::string_view> kKnown[] = {
    {4 * limits::kKiB, "cfb1b1b7b5f59aaac90152ffcc52ae38"},
    {64 * limits::kKiB, "aafe7bafceb9ba91da85f777f14dea1d"},
    {4 * limits::kMiB, "fc013ec94432acc04a49f861a3643f8d"},
};

void check(const wire::Checksum& found, std::size_t size) {
  const auto* const known =
      std::find_if(std::begin(kKnown), std::end(kKnown),
                   [size](const auto& candidate) { return candidate.first == size; });
  require(known != std::end(kKnown) && found.hex() == known->second, "a checksum");
}

void checksum_at_once(benchmark::State& state) {
  const auto bytes = contents(std::size_t(state.range(0)));
  wire::Checksum checksum;
  for (auto _ : state) {
    checksum = wire::checksum_of(bytes);
    benchmark::DoNotOptimize(checksum);
  }
  check(checksum, bytes.size());
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(checksum_at_once)
    ->Arg(4 * limits::kKiB)
    ->Arg(64 * limits::kKiB)
    ->Arg(limits::kChunkBytesDefault);

void checksum_in_pieces(benchmark::State& state) {
  const auto bytes = contents(std::size_t(state.range(0)));
  wire::Checksum checksum;
  for (auto _ : state) {
    wire::ChecksumStream stream;
    for (std::span<const std::byte> rest = bytes; !rest.empty();) {
      const auto piece = rest.first(std::min(kPieceBytes, rest.size()));
      stream.update(piece);
      rest = rest.subspan(piece.size());
    }
    checksum = stream.finish();
    benchmark::DoNotOptimize(checksum);
  }
  check(checksum, bytes.size());
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(checksum_in_pieces)->Arg(limits::kChunkBytesDefault);

}  // namespace
}  // namespace fgsync::bench
