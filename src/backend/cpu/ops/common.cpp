// Helpers shared by the op kernels.
#include "backend/cpu/ops/op_lists.h"

#include <fmt/format.h>

namespace minfer::cpu {

Refusal kv_refusal(DType t, int64_t head_dim) {
  if (kv_type_index(t) < 0) return fmt::format("KV type {} is not f32, f16, bf16 or q8_0", dtype_info(t).name);
  if (t == DType::kQ8_0 && head_dim % 32 != 0)
    return fmt::format("q8_0 needs head_dim a multiple of 32, got {}", head_dim);
  if (head_dim > kMaxHeadDim) return fmt::format("head_dim {} is above {}", head_dim, kMaxHeadDim);
  return {};
}

std::string layer_text(const Attrs& attrs) { return attrs.layer < 0 ? "" : fmt::format(" of layer {}", attrs.layer); }

}  // namespace minfer::cpu
