// The AVX-VNNI table of matmul kernels: what has no int8 products in it is AVX2's.
#include "backend/cpu/avxvnni/matmul_tables-inl.h"

namespace minfer::cpu {

void fill_matmul_kernels_avxvnni(MatmulKernels* k) {
  fill_matmul_kernels_avx2(k);
  k->isa = "avxvnni";
  avxvnni::fill_small_formats(k->formats);
  avxvnni::fill_super_formats(k->formats);
  avxvnni::fill_unpacked_formats(k->formats);
}

}  // namespace minfer::cpu
