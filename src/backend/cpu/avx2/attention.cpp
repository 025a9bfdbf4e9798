#include "vec-inl.h"

#include "keys-inl.h"

#include "backend/cpu/inl/math-inl.h"
#include "backend/cpu/inl/q8-inl.h"

#include "backend/cpu/inl/attention-inl.h"

namespace minfer::cpu {

const AttnKernels kAttnAvx2 = kAttn;

}  // namespace minfer::cpu
