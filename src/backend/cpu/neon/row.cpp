// The row kernels for NEON: the bodies in ../inl over this folder's vectors. Their order counts.
// clang-format off
#include "vec-inl.h"
#include "backend/cpu/inl/math-inl.h"
#include "backend/cpu/inl/row-inl.h"
// clang-format on

namespace minfer::cpu {

const RowKernels kRowNeon = kRow;

}  // namespace minfer::cpu
