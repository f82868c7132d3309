// Sealing and opening a frame in place, in the pieces in which it is sent.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <utility>

#include "base/limits.h"
#include "check.h"
#include "transport/frame_cipher.h"

namespace fgsync::bench {
namespace {

using transport::FrameCipher;

constexpr std::size_t kPieceBytes = 256 * limits::kKiB;
constexpr std::array<std::byte, 36> kAssociated{};  // as long as a frame's length and header

struct Frame {
  std::vector<std::byte> payload;
  std::array<std::byte, transport::kTagBytes> tag{};
};

std::unique_ptr<FrameCipher> make_cipher(Cipher cipher) {
  constexpr std::array<std::byte, 32> kNoSecret{};
  auto made = FrameCipher::create(cipher, transport::SessionSecret(kNoSecret), 1,
                                  transport::Direction::kFromInitiator, 0);
  require(made.ok(), "making a cipher");
  return std::move(*made);
}

template <typename Work>
void for_each_piece(std::span<std::byte> bytes, const Work& work) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(kPieceBytes, bytes.size()));
    require(work(piece).ok(), "a piece");
    bytes = bytes.subspan(piece.size());
  }
}

void seal_frame(FrameCipher& cipher, Frame& frame) {
  require(cipher.begin_seal(kAssociated).ok(), "beginning to seal");
  for_each_piece(frame.payload, [&](std::span<std::byte> piece) { return cipher.seal(piece); });
  require(cipher.finish_seal(frame.tag).ok(), "sealing");
}

void open_frame(FrameCipher& cipher, Frame& frame) {
  require(cipher.begin_open(kAssociated).ok(), "beginning to open");
  for_each_piece(frame.payload, [&](std::span<std::byte> piece) { return cipher.open(piece); });
  require(cipher.finish_open(frame.tag).ok(), "opening");
}

// Each frame is sealed and opened, and one of the two is what is timed.
void seal_and_open(benchmark::State& state, Cipher cipher, bool times_sealing) {
  const auto sealer = make_cipher(cipher);
  const auto opener = make_cipher(cipher);
  const auto plain = contents(std::size_t(state.range(0)));
  Frame frame{plain};
  for (auto _ : state) {
    const auto began = std::chrono::steady_clock::now();
    seal_frame(*sealer, frame);
    const auto sealed = std::chrono::steady_clock::now();
    require(frame.payload != plain, "sealed bytes are not the plain ones");
    const auto opening = std::chrono::steady_clock::now();
    open_frame(*opener, frame);
    const auto opened = std::chrono::steady_clock::now();
    require(frame.payload == plain, "opened bytes are the plain ones");
    const std::chrono::duration<double> taken = times_sealing ? sealed - began : opened - opening;
    state.SetIterationTime(taken.count());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void seal(benchmark::State& state, Cipher cipher) { seal_and_open(state, cipher, true); }
void open(benchmark::State& state, Cipher cipher) { seal_and_open(state, cipher, false); }

void pack_and_chunk(benchmark::internal::Benchmark* benchmark) {
  benchmark->UseManualTime()->Arg(limits::kPackBytesTarget)->Arg(limits::kChunkBytesDefault);
}
BENCHMARK_CAPTURE(seal, aes_128_gcm, Cipher::kAes128Gcm)->Apply(pack_and_chunk);
BENCHMARK_CAPTURE(open, aes_128_gcm, Cipher::kAes128Gcm)->Apply(pack_and_chunk);
BENCHMARK_CAPTURE(seal, aes_256_gcm, Cipher::kAes256Gcm)->Apply(pack_and_chunk);
BENCHMARK_CAPTURE(open, aes_256_gcm, Cipher::kAes256Gcm)->Apply(pack_and_chunk);
BENCHMARK_CAPTURE(seal, chacha20_poly1305, Cipher::kChaCha20Poly1305)->Apply(pack_and_chunk);
BENCHMARK_CAPTURE(open, chacha20_poly1305, Cipher::kChaCha20Poly1305)->Apply(pack_and_chunk);

}  // namespace
}  // namespace fgsync::bench
