// The cpu backend: per op, the kernels of one instruction set, best first, ending in the reference kernels.
// Composites it has no kernel for are decomposed by the plan.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "base/cpu_info.h"

namespace minfer::cpu {

// Requires: isa is one of usable_isas() (select.h).
std::unique_ptr<Backend> make_cpu_backend(IsaLevel isa);

}  // namespace minfer::cpu
