// The element-wise kernels for NEON: the bodies in ../inl over this folder's vectors. Their order counts.
// clang-format off
#include "vec-inl.h"
#include "backend/cpu/inl/math-inl.h"
#include "backend/cpu/inl/erf-inl.h"
#include "backend/cpu/inl/elementwise-inl.h"
// clang-format on

namespace minfer::cpu {

const ElementwiseKernels kElementwiseNeon = kElementwise;

}  // namespace minfer::cpu
