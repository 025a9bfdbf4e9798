#include "backend/cpu/inl/attention-inl.h"
#include "backend/cpu/inl/math-inl.h"
#include "backend/cpu/inl/q8-inl.h"
#include "vec-inl.h"

namespace minfer::cpu {

const AttnKernels kAttnNeon = kAttn;

}  // namespace minfer::cpu
