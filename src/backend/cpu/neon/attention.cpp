// The attention kernels for NEON: the bodies in ../inl over this folder's vectors. Their order counts.
// clang-format off
#include "vec-inl.h"
#include "backend/cpu/inl/math-inl.h"
#include "backend/cpu/inl/q8-inl.h"
#include "backend/cpu/inl/attention-inl.h"
// clang-format on

namespace minfer::cpu {

const AttnKernels kAttnNeon = kAttn;

}  // namespace minfer::cpu
