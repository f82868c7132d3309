// What a fuzz target defines: libFuzzer's entry point (its documentation, "Fuzz Target") and, for
// the smoke driver, valid inputs to start from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// Aborts (FGSYNC_ASSERT) when the code under test breaks a promise; returns 0 otherwise.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t length);

namespace fgsync::fuzz {

std::vector<std::vector<std::byte>> valid_samples();

}  // namespace fgsync::fuzz
