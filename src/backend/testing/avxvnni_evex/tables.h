// The AVX-VNNI kernels in the encoding of AVX-512 VNNI and VL: the same source, compiled so that a processor without
// the VEX encoding runs it. Only the encoding of vpdpbusd differs from the tables that --isa avxvnni uses.
#pragma once

#include "backend/cpu/kernels.h"
#include "backend/cpu/matmul_kernels.h"

namespace minfer::testing {

// Requires for running what they hold: isa_supported(IsaLevel::kAvx512).
void fill_matmul_kernels_avxvnni_evex(cpu::MatmulKernels* k);
extern const cpu::AttnKernels kAttnAvxVnniEvex;

// Parts of the above.
void fill_direct_avxvnni_evex(cpu::FormatKernels* f);
void fill_unpacked_avxvnni_evex(cpu::FormatKernels* f);

}  // namespace minfer::testing
