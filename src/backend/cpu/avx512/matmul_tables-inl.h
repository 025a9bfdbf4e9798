// Filling FormatKernels from the templates; what the files of this folder offer each other.
#pragma once

#include "backend/cpu/matmul_kernels.h"

namespace minfer::cpu::avx512 {

// Up to so many tokens (two tiles) formats that have an unpacked form are used as they are packed all the same.
inline constexpr int kDirectMax = 32;

void fill_small_formats(FormatKernels* f);     // [kFmtCount] q8_0, q4_0, q4_1, q5_0, q5_1, iq4_nl, mxfp4
void fill_super_formats(FormatKernels* f);     // [kFmtCount] K-quants and iq4_xs
void fill_unpacked_formats(FormatKernels* f);  // [kFmtCount] the unpacked forms of some of them
void fill_float_formats(FormatKernels* f);     // [kFmtCount] f32, f16, bf16

void quantize_act(const float* const* x, int tokens, int width, int64_t k, uint8_t* dst);
void interleave_act(const float* const* x, int tokens, int width, int64_t k, float* dst);

}  // namespace minfer::cpu::avx512
