#include "vec-inl.h"

#include "backend/cpu/inl/math-inl.h"

#include "backend/cpu/inl/row-inl.h"

namespace minfer::cpu {

const RowKernels kRowAvx512 = kRow;

}  // namespace minfer::cpu
