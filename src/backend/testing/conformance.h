// Conformance of the cpu backend: every kernel of an op, on every instruction set of this machine and at 1, 2 and 3
// threads, against the op's definition, bit by bit.
#pragma once

#include <string>
#include <vector>

#include "backend/testing/run_op.h"

namespace minfer::testing {

struct ConformanceOptions {
  std::vector<int> threads = {1, 2, 3};
  bool in_place = true;     // also runs in place where the kernel says it can
  bool all_kernels = true;  // false: only the first kernel that accepts, which must not be the reference
};

// Empty when all agree; otherwise "<kernel>/<isa> at <n> threads: <first difference>". Inputs that are regions are
// compared after the run too. When the definition fails, every kernel must fail with the same error code.
std::string check_conformance(Op op, const Attrs& attrs, const Inputs& in, const ConformanceOptions& options = {});

// Values of which many are zeros of both signs, denormals, infinities, NaN and the ends of exp's range.
TestTensor odd_f32(Random& random, Shape shape);

}  // namespace minfer::testing
