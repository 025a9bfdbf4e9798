#include "vec-inl.h"

#include "backend/cpu/inl/math-inl.h"

#include "backend/cpu/inl/row-inl.h"

namespace minfer::cpu {

const RowKernels kRowAvx2 = kRow;

}  // namespace minfer::cpu
