#include "transfer/resources.h"

#include <algorithm>

#include "base/limits.h"

namespace fgsync::transfer {
namespace {

// Descriptors besides those of streams: three standard ones, pipes to a remote shell, the control
// worker's two, listener and control connection, 12 directories held open, staging and state
// directories, a file or two in passing.
constexpr std::size_t kFixedDescriptors = 30;
// Per stream: its socket, a file for each of its two lanes, and a worker (two descriptors).
constexpr std::size_t kDescriptorsPerStream = 5;

}  // namespace

std::uint16_t affordable_streams(std::size_t descriptor_limit) {
  if (descriptor_limit < kFixedDescriptors + kDescriptorsPerStream) return 0;
  return std::uint16_t(std::min<std::size_t>(
      limits::kStreamsMax, (descriptor_limit - kFixedDescriptors) / kDescriptorsPerStream));
}

Status too_few_descriptors(std::size_t descriptor_limit) {
  return Status(ErrorCode::kUnusable,
                "the limit of open files is " + std::to_string(descriptor_limit) + ", at least " +
                    std::to_string(kFixedDescriptors + kDescriptorsPerStream) +
                    " are needed (ulimit -n)");
}

std::uint16_t automatic_streams(std::size_t cores) {
  return std::uint16_t(std::clamp<std::size_t>(cores, 2, 8));
}

io::RuntimeOptions runtime_options(IoEngine engine, std::uint16_t streams, std::size_t cores) {
  io::RuntimeOptions options;
  options.engine = engine;
  options.workers =
      std::clamp<std::size_t>(std::min<std::size_t>(cores, streams), 1, limits::kWorkersMax);
  // A disk wants several requests at a time even where one core could copy from the page cache.
  options.blocking_threads = std::clamp<std::size_t>(2 * cores, 4, limits::kBlockingThreadsMax);
  return options;
}

bool is_possible_chunk_size(std::uint64_t bytes) {
  return bytes >= limits::kChunkBytesMin && bytes <= limits::kChunkBytesMax &&
         bytes % limits::kSlotAlignment == 0;
}

std::uint64_t choose_chunk_bytes(std::uint64_t asked, std::uint64_t bandwidth_limit) {
  if (asked > 0) return asked;
  if (bandwidth_limit == 0) return limits::kChunkBytesDefault;
  const std::uint64_t quarter =
      bandwidth_limit / 4 / limits::kSlotAlignment * limits::kSlotAlignment;
  return std::clamp<std::uint64_t>(quarter, limits::kChunkBytesMin, limits::kChunkBytesDefault);
}

}  // namespace fgsync::transfer
