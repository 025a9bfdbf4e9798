// Tile kernels straight from packed weights: formats of 256-value super-blocks.
#include "backend/cpu/neon/matmul_formats-inl.h"
#include "backend/cpu/neon/matmul_tables-inl.h"

namespace minfer::cpu::neon {

void fill_super_formats(FormatKernels* f) {
  tiles<Q2_K>(f[kFmtQ2_K].tile);
  tiles<Q3_K>(f[kFmtQ3_K].tile);
  tiles<Q4_K>(f[kFmtQ4_K].tile);
  tiles<Q5_K>(f[kFmtQ5_K].tile);
  tiles<Q6_K>(f[kFmtQ6_K].tile);
  tiles<IQ4_XS>(f[kFmtIQ4_XS].tile);
}

}  // namespace minfer::cpu::neon
