// Tile kernels straight from packed weights: formats of 32-value blocks.
#include "backend/cpu/avx2/matmul_formats-inl.h"
#include "backend/cpu/avx2/matmul_tables-inl.h"
#include "backend/cpu/avx2/matmul_tile-inl.h"

namespace minfer::cpu::avx2 {

void fill_small_formats(FormatKernels* f) {
  tiles<Q8_0>(f[kFmtQ8_0].tile);
  tiles<Q4_0>(f[kFmtQ4_0].tile);
  tiles<Q4_1>(f[kFmtQ4_1].tile);
  tiles<Q5_0>(f[kFmtQ5_0].tile);
  tiles<Q5_1>(f[kFmtQ5_1].tile);
  tiles<IQ4_NL>(f[kFmtIQ4_NL].tile);
  tiles<MXFP4>(f[kFmtMXFP4].tile);
}

}  // namespace minfer::cpu::avx2
