// g++ 12 warns about its own intrinsics' deliberately undefined pass-through operands once they are inlined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include "backend/cpu/avx2/vec-inl.h"

#include "backend/cpu/avxvnni/keys-inl.h"

#include "backend/cpu/inl/math-inl.h"
#include "backend/cpu/inl/q8-inl.h"

#include "backend/cpu/inl/attention-inl.h"
#include "backend/testing/avxvnni_evex/tables.h"

namespace minfer::testing {

const cpu::AttnKernels kAttnAvxVnniEvex = cpu::kAttn;

}  // namespace minfer::testing
