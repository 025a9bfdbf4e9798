// The matmul ops of the cpu backend: kernel lists for kMatMul, kMatMulGroup, kNormMatMulGroup, kMatMulAdd and
// kMoeMatMul over packed weights (pack.h). Other ops have an empty list here.
#pragma once

#include <span>

#include "backend/cpu/pack.h"
#include "backend/kernel.h"
#include "base/cpu_info.h"

namespace minfer::cpu {

// Best first. Empty for an ISA this build has no kernels for. Requires for running them: isa_supported(isa).
std::span<const Kernel> matmul_op_kernels(Op op, IsaLevel isa);

}  // namespace minfer::cpu
