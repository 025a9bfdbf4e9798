// Tile kernels straight from packed weights: formats of 32-value blocks.
#include "backend/cpu/neon/matmul_formats-inl.h"
#include "backend/cpu/neon/matmul_tables-inl.h"

namespace minfer::cpu::neon {

void fill_small_formats(FormatKernels* f) {
  tiles<Q8_0>(f[kFmtQ8_0].tile);
  tiles<Q4_0>(f[kFmtQ4_0].tile);
  tiles<Q4_1>(f[kFmtQ4_1].tile);
  tiles<Q5_0>(f[kFmtQ5_0].tile);
  tiles<Q5_1>(f[kFmtQ5_1].tile);
  tiles<IQ4_NL>(f[kFmtIQ4_NL].tile);
  tiles<MXFP4>(f[kFmtMXFP4].tile);
}

}  // namespace minfer::cpu::neon
