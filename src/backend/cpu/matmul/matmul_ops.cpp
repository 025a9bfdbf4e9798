#include "backend/cpu/matmul/matmul_ops.h"

#include "backend/cpu/matmul/dense.h"
#include "backend/cpu/matmul/moe.h"
#include "backend/cpu/select.h"

namespace minfer::cpu {
namespace {

using Fill = void (*)(MatmulKernels*);

template <Fill fill, IsaLevel isa>
const MatmulKernels& table() {
  static const MatmulKernels kernels = [] {
    MatmulKernels k = {};
    fill(&k);
    k.rms_norm = cpu_kernels(isa).row.rms_norm;
    return k;
  }();
  return kernels;
}

template <Fill fill, IsaLevel isa, Op op>
void run_dense_op(const KernelArgs& args, Worker& worker) {
  run_dense(table<fill, isa>(), op, args, worker);
}
template <Fill fill, IsaLevel isa>
size_t dense_scratch_op(const NodeDesc& node, int n_threads) {
  return dense_scratch(table<fill, isa>(), node, n_threads);
}
template <Fill fill, IsaLevel isa>
void run_moe_op(const KernelArgs& args, Worker& worker) {
  run_moe(table<fill, isa>(), args, worker);
}
template <Fill fill, IsaLevel isa>
size_t moe_scratch_op(const NodeDesc& node, int n_threads) {
  return moe_scratch(table<fill, isa>(), node, n_threads);
}

template <Fill fill, IsaLevel isa>
std::span<const Kernel> kernels_of(Op op) {
  const char* name = isa_name(isa);
  static const Kernel matmul[] = {
      {"matmul_packed", name, accept_dense, run_dense_op<fill, isa, Op::kMatMul>, dense_scratch_op<fill, isa>}};
  static const Kernel group[] = {{"matmul_group_packed", name, accept_dense, run_dense_op<fill, isa, Op::kMatMulGroup>,
                                  dense_scratch_op<fill, isa>}};
  static const Kernel add[] = {
      {"matmul_add_packed", name, accept_dense, run_dense_op<fill, isa, Op::kMatMulAdd>, dense_scratch_op<fill, isa>}};
  static const Kernel norm_group[] = {{"norm_matmul_group_packed", name, accept_dense,
                                       run_dense_op<fill, isa, Op::kNormMatMulGroup>, dense_scratch_op<fill, isa>}};
  static const Kernel moe[] = {
      {"moe_matmul_packed", name, accept_moe, run_moe_op<fill, isa>, moe_scratch_op<fill, isa>}};
  switch (op) {
    case Op::kMatMul: return matmul;
    case Op::kMatMulGroup: return group;
    case Op::kMatMulAdd: return add;
    case Op::kNormMatMulGroup: return norm_group;
    case Op::kMoeMatMul: return moe;
    default: return {};
  }
}

}  // namespace

std::span<const Kernel> matmul_op_kernels(Op op, IsaLevel isa) {
  switch (isa) {
    case IsaLevel::kScalar: return kernels_of<fill_matmul_kernels_generic, IsaLevel::kScalar>(op);
#if defined(__x86_64__)
    case IsaLevel::kAvx2: return kernels_of<fill_matmul_kernels_avx2, IsaLevel::kAvx2>(op);
    case IsaLevel::kAvxVnni: return kernels_of<fill_matmul_kernels_avxvnni, IsaLevel::kAvxVnni>(op);
    case IsaLevel::kAvx512: return kernels_of<fill_matmul_kernels_avx512, IsaLevel::kAvx512>(op);
#elif defined(__aarch64__)
    case IsaLevel::kNeon: return kernels_of<fill_matmul_kernels_neon, IsaLevel::kNeon>(op);
#endif
    default: return {};
  }
}

}  // namespace minfer::cpu
