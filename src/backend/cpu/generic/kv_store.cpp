#include "vec-inl.h"

#include "backend/cpu/inl/q8-inl.h"

#include "backend/cpu/inl/kv_store-inl.h"

namespace minfer::cpu {

const KvKernels kKvGeneric = kKv;

}  // namespace minfer::cpu
