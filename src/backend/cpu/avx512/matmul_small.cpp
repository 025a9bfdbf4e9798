// Tile kernels straight from packed weights: formats of 32-value blocks.
#include "backend/cpu/avx512/matmul_formats-inl.h"
#include "backend/cpu/avx512/matmul_tables-inl.h"

namespace minfer::cpu::avx512 {
void fill_small_formats(FormatKernels* f) {
  direct<Q8_0>(f[kFmtQ8_0]);
  direct<Q4_0>(f[kFmtQ4_0]);
  direct<Q4_1>(f[kFmtQ4_1]);
  direct<Q5_0>(f[kFmtQ5_0]);
  direct<Q5_1>(f[kFmtQ5_1]);
  direct<IQ4_NL>(f[kFmtIQ4_NL]);
  direct<MXFP4>(f[kFmtMXFP4]);
}

}  // namespace minfer::cpu::avx512
