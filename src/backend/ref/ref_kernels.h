// The reference backend: one scalar kernel per primitive op, the definition of the op to the bit (docs/numerics.md).
// Composites have none: they are what their decomposition gives.
// Layout:  weights are kPlain of any storage type; KV regions as tensor/kv_layout.h says.
// Threads: each kernel splits rows or outputs by Worker::share; where a row is computed cannot change its bits.
#pragma once

#include <span>

#include "backend/kernel.h"

namespace minfer {

// The kernel of a primitive (one entry), or an empty list for a composite. The entries live as long as the program.
std::span<const Kernel> ref_kernels(Op op);

}  // namespace minfer
