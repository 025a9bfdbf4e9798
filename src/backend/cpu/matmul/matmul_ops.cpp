#include "backend/cpu/matmul/matmul_ops.h"

#include "backend/cpu/matmul/dense.h"
#include "backend/cpu/matmul/moe.h"

namespace minfer::cpu {
namespace {

using Fill = void (*)(MatmulKernels*);

template <Fill fill>
const MatmulKernels& table() {
  static const MatmulKernels kernels = [] {
    MatmulKernels k = {};
    fill(&k);
    return k;
  }();
  return kernels;
}

template <Fill fill, Op op>
void run_dense_op(const KernelArgs& args, Worker& worker) {
  run_dense(table<fill>(), op, args, worker);
}
template <Fill fill>
size_t dense_scratch_op(const NodeDesc& node, int n_threads) {
  return dense_scratch(table<fill>(), node, n_threads);
}
template <Fill fill>
void run_moe_op(const KernelArgs& args, Worker& worker) {
  run_moe(table<fill>(), args, worker);
}
template <Fill fill>
size_t moe_scratch_op(const NodeDesc& node, int n_threads) {
  return moe_scratch(table<fill>(), node, n_threads);
}

template <Fill fill>
std::span<const Kernel> kernels_of(Op op, const char* isa) {
  static const Kernel matmul[] = {
      {"matmul_packed", isa, accept_dense, run_dense_op<fill, Op::kMatMul>, dense_scratch_op<fill>}};
  static const Kernel group[] = {
      {"matmul_group_packed", isa, accept_dense, run_dense_op<fill, Op::kMatMulGroup>, dense_scratch_op<fill>}};
  static const Kernel add[] = {
      {"matmul_add_packed", isa, accept_dense, run_dense_op<fill, Op::kMatMulAdd>, dense_scratch_op<fill>}};
  static const Kernel moe[] = {{"moe_matmul_packed", isa, accept_moe, run_moe_op<fill>, moe_scratch_op<fill>}};
  switch (op) {
    case Op::kMatMul: return matmul;
    case Op::kMatMulGroup: return group;
    case Op::kMatMulAdd: return add;
    case Op::kMoeMatMul: return moe;
    default: return {};
  }
}

}  // namespace

std::span<const Kernel> matmul_op_kernels(Op op, IsaLevel isa) {
  switch (isa) {
    case IsaLevel::kScalar: return kernels_of<fill_matmul_kernels_generic>(op, "scalar");
#if defined(__x86_64__)
    case IsaLevel::kAvx2: return kernels_of<fill_matmul_kernels_avx2>(op, "avx2");
    case IsaLevel::kAvxVnni: return kernels_of<fill_matmul_kernels_avxvnni>(op, "avxvnni");
    case IsaLevel::kAvx512: return kernels_of<fill_matmul_kernels_avx512>(op, "avx512");
#elif defined(__aarch64__)
    case IsaLevel::kNeon: return kernels_of<fill_matmul_kernels_neon>(op, "neon");
#endif
    default: return {};
  }
}

}  // namespace minfer::cpu
