// What the matmul files of this folder offer each other.
#pragma once

#include "backend/cpu/matmul_kernels.h"

namespace minfer::cpu::neon {

void fill_small_formats(FormatKernels* f);     // [kFmtCount] q8_0, q4_0, q4_1, q5_0, q5_1, iq4_nl, mxfp4
void fill_super_formats(FormatKernels* f);     // [kFmtCount] K-quants and iq4_xs
void fill_unpacked_formats(FormatKernels* f);  // [kFmtCount] the unpacked forms of both
void fill_float_formats(FormatKernels* f);     // [kFmtCount] f32, f16, bf16

void quantize_act(const float* const* x, int tokens, int width, int64_t k, uint8_t* dst);
void interleave_act(const float* const* x, int tokens, int width, int64_t k, float* dst);

}  // namespace minfer::cpu::neon
