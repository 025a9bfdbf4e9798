// kMoeMatMul: every token with the experts its router chose, tokens grouped by expert.
// Threads: run_moe is called by every worker of the run.
// Errors:  an expert id outside the weights fails the run and names the id, the token and the number of experts.
#pragma once

#include "backend/cpu/matmul_kernels.h"
#include "backend/kernel.h"

namespace minfer::cpu {

Refusal accept_moe(const NodeDesc& node);
size_t moe_scratch(const MatmulKernels& kernels, const NodeDesc& node, int n_threads);
void run_moe(const MatmulKernels& kernels, const KernelArgs& args, Worker& worker);

}  // namespace minfer::cpu
