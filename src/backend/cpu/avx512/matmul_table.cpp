// The AVX-512 (F, BW, DQ, VL, VNNI) table of matmul kernels.
#include "backend/cpu/avx512/matmul_tables-inl.h"

namespace minfer::cpu {

void fill_matmul_kernels_avx512(MatmulKernels* k) {
  static const int kWidths[] = {1, 2, 3, 4, 6, 8, 12, 16}, kFloatWidths[] = {1, 2, 3, 4, 6, 8, 12};
  k->isa = "avx512";
  int n = 0;
  for (const int w : kWidths) k->widths[n++] = w;
  n = 0;
  for (const int w : kFloatWidths) k->float_widths[n++] = w;
  k->quantize = avx512::quantize_act;
  k->interleave = avx512::interleave_act;
  avx512::fill_float_formats(k->formats);
  avx512::fill_small_formats(k->formats);
  avx512::fill_super_formats(k->formats);
  avx512::fill_unpacked_formats(k->formats);
}

}  // namespace minfer::cpu
