// What the matmul files of this folder offer each other.
#pragma once

#include "backend/cpu/matmul_kernels.h"

namespace minfer::cpu::avxvnni {

void fill_small_formats(FormatKernels* f);     // [kFmtCount] q8_0, q4_0, q4_1, q5_0, q5_1, iq4_nl, mxfp4
void fill_super_formats(FormatKernels* f);     // [kFmtCount] K-quants and iq4_xs
void fill_unpacked_formats(FormatKernels* f);  // [kFmtCount] the unpacked forms of both

}  // namespace minfer::cpu::avxvnni
