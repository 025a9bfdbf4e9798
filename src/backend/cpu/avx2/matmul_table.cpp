// The AVX2 (with FMA and F16C) table of matmul kernels.
#include "backend/cpu/avx2/matmul_tables-inl.h"

namespace minfer::cpu {

void fill_matmul_kernels_avx2(MatmulKernels* k) {
  static const int kWidths[] = {1, 2, 3, 4, 6}, kFloatWidths[] = {1, 2, 3, 4, 6};
  k->isa = "avx2";
  int n = 0;
  for (const int w : kWidths) k->widths[n++] = w;
  n = 0;
  for (const int w : kFloatWidths) k->float_widths[n++] = w;
  k->quantize = avx2::quantize_act;
  k->interleave = avx2::interleave_act;
  avx2::fill_float_formats(k->formats);
  avx2::fill_small_formats(k->formats);
  avx2::fill_super_formats(k->formats);
  avx2::fill_unpacked_formats(k->formats);
  for (FormatKernels& f : k->formats) {
    if (f.groups == 0) f.groups = 1;
  }
}

}  // namespace minfer::cpu
