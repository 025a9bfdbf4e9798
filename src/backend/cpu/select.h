// Which micro-kernel tables this build has, and which of them this processor can run.
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "backend/cpu/kernels.h"
#include "base/cpu_info.h"

namespace minfer::cpu {

// The ISAs that both this build and this processor have, best first; kScalar is always the last.
std::vector<IsaLevel> usable_isas();

// Requires: isa is one of usable_isas().
const CpuKernels& cpu_kernels(IsaLevel isa);

}  // namespace minfer::cpu
