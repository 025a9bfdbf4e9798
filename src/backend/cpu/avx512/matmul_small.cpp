// Tile kernels straight from packed weights: formats of 32-value blocks.
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
