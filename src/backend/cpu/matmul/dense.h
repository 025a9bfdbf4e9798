// Matmuls of one activation matrix with one or more packed weights: kMatMul, kMatMulAdd, kMatMulGroup and
// kNormMatMulGroup.
// Threads: run_dense is called by every worker of the run.
#pragma once

#include "backend/cpu/matmul_kernels.h"
#include "backend/kernel.h"

namespace minfer::cpu {

// Why a kernel over packed weights cannot run the node; empty = it can.
Refusal accept_dense(const NodeDesc& node);
size_t dense_scratch(const MatmulKernels& kernels, const NodeDesc& node, int n_threads);
void run_dense(const MatmulKernels& kernels, Op op, const KernelArgs& args, Worker& worker);

}  // namespace minfer::cpu
