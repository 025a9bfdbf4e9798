// Tile kernels straight from packed weights: formats of 256-value super-blocks.
#include "backend/cpu/avx2/matmul_formats-inl.h"
#include "backend/cpu/avx2/matmul_tables-inl.h"
#include "backend/cpu/avx2/matmul_tile-inl.h"

namespace minfer::cpu::avx2 {

void fill_super_formats(FormatKernels* f) {
  tiles<Q2_K>(f[kFmtQ2_K].tile);
  tiles<Q3_K>(f[kFmtQ3_K].tile);
  tiles<Q4_K>(f[kFmtQ4_K].tile);
  tiles<Q5_K>(f[kFmtQ5_K].tile);
  tiles<Q6_K>(f[kFmtQ6_K].tile);
  tiles<IQ4_XS>(f[kFmtIQ4_XS].tile);
}

}  // namespace minfer::cpu::avx2
