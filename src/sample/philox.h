// A counter-based random generator: the number for (seed, position) depends on nothing else, so a request draws the
// same numbers alone or in a batch, whatever was computed before.
// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011: Philox 4x32, 10 rounds.
#pragma once

#include <array>
#include <cstdint>

namespace minfer {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Uniform in [0, 1) with 53 bits. `stream` separates draws made at one position.
double uniform_at(uint64_t seed, uint64_t position, uint32_t stream = 0);

}  // namespace minfer
