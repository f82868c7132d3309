// How many streams and workers this process can afford.
#pragma once

#include <cstddef>
#include <cstdint>

#include "io/runtime.h"

namespace fgsync::transfer {

// The most streams for which this process has descriptors enough; 0 when they are too few for any.
std::uint16_t affordable_streams(std::size_t descriptor_limit);

// Why a process with so few descriptors does not start a run.
Status too_few_descriptors(std::size_t descriptor_limit);

// Streams for a run that leaves the choice to us: one for each core, 2 to 8. One stream fills 10
// Gbit/s on a private link and clouds cap a flow at 5; beyond eight, or with more than cores,
// nothing is gained (docs/decisions.md).
std::uint16_t automatic_streams(std::size_t cores);

// Workers and blocking threads for that many streams.
io::RuntimeOptions runtime_options(IoEngine engine, std::uint16_t streams, std::size_t cores);

// Whether a chunk may have this size: within its bounds, and a whole number of blocks for direct
// I/O.
bool is_possible_chunk_size(std::uint64_t bytes);

// Chunk size for a run: what was asked for, else the default, made smaller where a bandwidth limit
// would turn a chunk into a wait of more than a quarter of a second.
std::uint64_t choose_chunk_bytes(std::uint64_t asked, std::uint64_t bandwidth_limit);

}  // namespace fgsync::transfer
