#include "backend/cpu/inl/elementwise-inl.h"
#include "backend/cpu/inl/math-inl.h"
#include "vec-inl.h"

namespace minfer::cpu {

const ElementwiseKernels kElementwiseNeon = kElementwise;

}  // namespace minfer::cpu
