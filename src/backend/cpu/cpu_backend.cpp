#include "backend/cpu/cpu_backend.h"

#include <array>
#include <vector>

#include "backend/cpu/matmul/matmul_ops.h"
#include "backend/cpu/ops/op_lists.h"
#include "backend/ref/ref_kernels.h"

namespace minfer::cpu {

namespace {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(IsaLevel isa) : isa_(isa) {
    for (int i = 0; i < kOpCount; ++i) {
      const Op op = static_cast<Op>(i);
      std::vector<Kernel>& list = lists_[static_cast<size_t>(i)];
      for (auto kernels :
           {matmul_op_kernels(op, isa), elementwise_kernels(op, isa), row_kernels(op, isa), kv_kernels(op, isa),
            attention_kernels(op, isa), moe_route_kernels(op, isa), ref_kernels(op)}) {
        list.insert(list.end(), kernels.begin(), kernels.end());
      }
    }
  }

  const char* name() const override { return "cpu"; }
  const char* isa() const override { return isa_name(isa_); }
  std::span<const Kernel> kernels(Op op) const override { return lists_[static_cast<size_t>(op)]; }
  Result<std::optional<PackedWeight>> pack_weight(const TensorView& plain, ThreadPool& pool) const override {
    return cpu::pack_weight(plain, pool);
  }

 private:
  IsaLevel isa_;
  std::array<std::vector<Kernel>, kOpCount> lists_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(IsaLevel isa) { return std::make_unique<CpuBackend>(isa); }

}  // namespace minfer::cpu
