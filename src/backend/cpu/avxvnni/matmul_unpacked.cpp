// Unpacking, and the tile kernels over unpacked weights.
#include "backend/cpu/avxvnni/matmul_tables-inl.h"
#include "backend/cpu/avxvnni/matmul_tile-inl.h"

#include "backend/cpu/avx2/matmul_fill-inl.h"

namespace minfer::cpu::avxvnni {

void fill_unpacked_formats(FormatKernels* f) { ymm::fill_unpacked(f); }

}  // namespace minfer::cpu::avxvnni
