// Tile kernels straight from packed weights: formats of 256-value super-blocks.
#include "backend/cpu/avx512/matmul_formats-inl.h"
#include "backend/cpu/avx512/matmul_tables-inl.h"

namespace minfer::cpu::avx512 {
void fill_super_formats(FormatKernels* f) {
  direct<Q2_K>(f[kFmtQ2_K]);
  direct<Q3_K>(f[kFmtQ3_K]);
  direct<Q4_K>(f[kFmtQ4_K]);
  direct<Q5_K>(f[kFmtQ5_K]);
  direct<Q6_K>(f[kFmtQ6_K]);
  direct<IQ4_XS>(f[kFmtIQ4_XS]);
}

}  // namespace minfer::cpu::avx512
