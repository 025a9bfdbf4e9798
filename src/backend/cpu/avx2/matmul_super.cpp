// Tile kernels straight from packed weights: formats of 256-value super-blocks.
#include "backend/cpu/avx2/matmul_tables-inl.h"
#include "backend/cpu/avx2/matmul_tile-inl.h"

#include "backend/cpu/avx2/matmul_fill-inl.h"

namespace minfer::cpu::avx2 {

void fill_super_formats(FormatKernels* f) { ymm::fill_super(f); }

}  // namespace minfer::cpu::avx2
