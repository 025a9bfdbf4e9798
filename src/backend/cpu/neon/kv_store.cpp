// The KV store kernels for NEON: the bodies in ../inl over this folder's vectors. Their order counts.
// clang-format off
#include "vec-inl.h"
#include "backend/cpu/inl/q8-inl.h"
#include "backend/cpu/inl/kv_store-inl.h"
// clang-format on

namespace minfer::cpu {

const KvKernels kKvNeon = kKv;

}  // namespace minfer::cpu
