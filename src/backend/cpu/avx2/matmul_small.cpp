// Tile kernels straight from packed weights: formats of 32-value blocks.
#include "backend/cpu/avx2/matmul_tables-inl.h"
#include "backend/cpu/avx2/matmul_tile-inl.h"

#include "backend/cpu/avx2/matmul_fill-inl.h"

namespace minfer::cpu::avx2 {

void fill_small_formats(FormatKernels* f) { ymm::fill_small(f); }

}  // namespace minfer::cpu::avx2
