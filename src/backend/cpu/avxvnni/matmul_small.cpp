// Tile kernels straight from packed weights: formats of 32-value blocks.
#include "backend/cpu/avxvnni/matmul_tables-inl.h"
#include "backend/cpu/avxvnni/matmul_tile-inl.h"

#include "backend/cpu/avx2/matmul_fill-inl.h"

namespace minfer::cpu::avxvnni {

void fill_small_formats(FormatKernels* f) { ymm::fill_small(f); }

}  // namespace minfer::cpu::avxvnni
