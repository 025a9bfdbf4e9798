// The NEON (with dot product and half precision) table of matmul kernels.
#include "backend/cpu/neon/matmul_tables-inl.h"

namespace minfer::cpu {

void fill_matmul_kernels_neon(MatmulKernels* k) {
  static const int kWidths[] = {1, 2, 3, 4, 6, 8}, kFloatWidths[] = {1, 2, 3, 4, 6};
  k->isa = "neon";
  int n = 0;
  for (const int w : kWidths) k->widths[n++] = w;
  n = 0;
  for (const int w : kFloatWidths) k->float_widths[n++] = w;
  k->quantize = neon::quantize_act;
  k->interleave = neon::interleave_act;
  neon::fill_float_formats(k->formats);
  neon::fill_small_formats(k->formats);
  neon::fill_super_formats(k->formats);
  neon::fill_unpacked_formats(k->formats);
  for (FormatKernels& f : k->formats) {
    if (f.groups == 0) f.groups = 1;
  }
}

}  // namespace minfer::cpu
