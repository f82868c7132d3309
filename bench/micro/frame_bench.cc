// The codec of data frames: headers, and packs of small files.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <span>

#include "base/limits.h"
#include "check.h"
#include "wire/frame.h"

namespace fgsync::bench {
namespace {

void frame_header(benchmark::State& state) {
  wire::FrameHeader header{wire::FrameType::kChunk, 0, 4711, 0};
  for (auto _ : state) {
    header.offset += limits::kChunkBytesDefault;
    header.offset %= std::uint64_t{1} << 40;
    const auto bytes = wire::encode(header);
    const auto decoded = wire::decode_frame_header(bytes);
    require(decoded.ok() && decoded->type == header.type && decoded->count == header.count &&
                decoded->entry == header.entry && decoded->offset == header.offset,
            "a frame's header");
  }
}
BENCHMARK(frame_header);

void checksum_binding(benchmark::State& state) {
  const wire::Checksum checksum = wire::checksum_of(contents(1000));
  std::uint64_t offset = 0;
  for (auto _ : state) {
    const wire::Checksum bound = wire::bind_checksum(checksum, 4711, offset);
    require(bound != checksum && wire::bind_checksum(bound, 4711, offset) == checksum,
            "a bound checksum");
    offset += limits::kChunkBytesDefault;
  }
}
BENCHMARK(checksum_binding);

// A pack of files of so many bytes, as it travels.
std::vector<std::byte> make_pack(std::size_t file_bytes, std::uint32_t count) {
  std::vector<std::byte> pack;
  for (std::uint32_t number = 0; number < count; ++number) {
    const auto bytes = contents(file_bytes, number);
    const wire::PackedEntry entry{number + 1, wire::PackedStatus::kComplete,
                                  wire::checksum_of(bytes), bytes};
    const std::size_t begin = pack.size();
    pack.resize(begin + wire::kPackedHeaderBytes);
    wire::encode_packed_header(entry, std::span(pack).subspan(begin));
    pack.insert(pack.end(), bytes.begin(), bytes.end());
  }
  return pack;
}

void pack_reading(benchmark::State& state) {
  const auto file_bytes = std::size_t(state.range(0));
  const auto count = std::uint32_t(std::min<std::size_t>(
      limits::kPackEntriesMax, limits::kPackBytesTarget / (file_bytes + wire::kPackedHeaderBytes)));
  const auto pack = make_pack(file_bytes, count);
  for (auto _ : state) {
    wire::PackReader reader(pack, count);
    for (std::uint32_t number = 0; number < count; ++number) {
      const auto entry = reader.next();
      require(entry.ok() && entry->has_value() && (*entry)->entry == number + 1 &&
                  (*entry)->bytes.size() == file_bytes &&
                  (*entry)->bytes.front() == std::byte(7 + number),
              "a packed file");
    }
    const auto end = reader.next();
    require(end.ok() && !end->has_value(), "the end of a pack");
  }
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(pack_reading)->ArgName("file")->Arg(512)->Arg(16 * limits::kKiB);

}  // namespace
}  // namespace fgsync::bench
