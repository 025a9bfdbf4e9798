// Unpacking, and the tile kernels over unpacked weights.
#include "backend/cpu/avx2/matmul_tables-inl.h"
#include "backend/cpu/avx2/matmul_tile-inl.h"

#include "backend/cpu/avx2/matmul_fill-inl.h"

namespace minfer::cpu::avx2 {

void fill_unpacked_formats(FormatKernels* f) { ymm::fill_unpacked(f); }

}  // namespace minfer::cpu::avx2
