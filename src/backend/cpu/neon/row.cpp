#include "backend/cpu/inl/row-inl.h"
#include "vec-inl.h"

namespace minfer::cpu {

const RowKernels kRowNeon = kRow;

}  // namespace minfer::cpu
