#include "backend/cpu/avxvnni/matmul_tile-inl.h"
#include "backend/testing/avxvnni_evex/tables.h"

#include "backend/cpu/avx2/matmul_fill-inl.h"

namespace minfer::testing {

void fill_matmul_kernels_avxvnni_evex(cpu::MatmulKernels* k) {
  cpu::fill_matmul_kernels_avx2(k);
  k->isa = "avxvnni";
  fill_direct_avxvnni_evex(k->formats);
  fill_unpacked_avxvnni_evex(k->formats);
}

void fill_direct_avxvnni_evex(cpu::FormatKernels* f) {
  cpu::ymm::fill_small(f);
  cpu::ymm::fill_super(f);
}

}  // namespace minfer::testing
