// Tile kernels straight from packed weights: formats of 256-value super-blocks.
#include "backend/cpu/avx512/matmul_formats-inl.h"
#include "backend/cpu/avx512/matmul_tables-inl.h"

namespace minfer::cpu::avx512 {
namespace {

template <class F>
void direct(FormatKernels& k) {
  k.groups = 1;
  k.tile[1] = tile<F, 1>;
  k.tile[2] = tile<F, 2>;
  k.tile[3] = tile<F, 3>;
  k.tile[4] = tile<F, 4>;
  k.tile[6] = tile<F, 6>;
  k.tile[8] = tile<F, 8>;
  k.tile[12] = tile<F, 12>;
  k.tile[16] = tile<F, 16>;
}

}  // namespace

void fill_super_formats(FormatKernels* f) {
  direct<Q2_K>(f[kFmtQ2_K]);
  direct<Q3_K>(f[kFmtQ3_K]);
  direct<Q4_K>(f[kFmtQ4_K]);
  direct<Q5_K>(f[kFmtQ5_K]);
  direct<Q6_K>(f[kFmtQ6_K]);
  direct<IQ4_XS>(f[kFmtIQ4_XS]);
}

}  // namespace minfer::cpu::avx512
