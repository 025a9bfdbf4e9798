#include "vec-inl.h"

#include "backend/cpu/inl/erf-inl.h"
#include "backend/cpu/inl/math-inl.h"

#include "backend/cpu/inl/elementwise-inl.h"

namespace minfer::cpu {

const ElementwiseKernels kElementwiseAvx512 = kElementwise;

}  // namespace minfer::cpu
