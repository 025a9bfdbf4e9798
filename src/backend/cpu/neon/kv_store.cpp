#include "backend/cpu/inl/kv_store-inl.h"
#include "backend/cpu/inl/q8-inl.h"
#include "vec-inl.h"

namespace minfer::cpu {

const KvKernels kKvNeon = kKv;

}  // namespace minfer::cpu
