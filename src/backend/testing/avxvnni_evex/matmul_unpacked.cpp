#include "backend/cpu/avxvnni/matmul_tile-inl.h"
#include "backend/testing/avxvnni_evex/tables.h"

#include "backend/cpu/avx2/matmul_fill-inl.h"

namespace minfer::testing {

void fill_unpacked_avxvnni_evex(cpu::FormatKernels* f) { cpu::ymm::fill_unpacked(f); }

}  // namespace minfer::testing
