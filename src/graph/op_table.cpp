// The op table.
#include <array>

#include "graph/ops/rules.h"

namespace minfer {
namespace {

constexpr bool kPrimitive = false, kComposite = true, kPure = false, kWrites = true;

// In the order of enum Op; op_table_test.cpp checks the names against it.
constexpr std::array<OpInfo, kOpCount> kTable = {{
    {"embed", kPrimitive, kPure, infer_embed, 2, 2},
    {"get_rows", kPrimitive, kPure, infer_get_rows, 2, 2},
    {"matmul", kPrimitive, kPure, infer_matmul, 2, 2},
    {"add", kPrimitive, kPure, infer_add, 2, 2},
    {"mul", kPrimitive, kPure, infer_mul, 2, 2},
    {"scale", kPrimitive, kPure, infer_scale, 1, 1},
    {"rms_norm", kPrimitive, kPure, infer_rms_norm, 1, 1},
    {"unary", kPrimitive, kPure, infer_unary, 1, 1},
    {"softcap", kPrimitive, kPure, infer_softcap, 1, 1},
    {"rope_table", kPrimitive, kPure, infer_rope_table, 2, 2},
    {"rope", kPrimitive, kPure, infer_rope, 2, 2},
    {"kv_store_k", kPrimitive, kWrites, infer_kv_store_k, 3, 3, 1, -1},
    {"kv_store_v", kPrimitive, kWrites, infer_kv_store_v, 3, 3, -1, 1},
    {"attn_scores", kPrimitive, kPure, infer_attn_scores, 5, 5, 1, -1},
    {"attn_softmax", kPrimitive, kPure, infer_attn_softmax, 2, 2},
    {"attn_mix", kPrimitive, kPure, infer_attn_mix, 5, 5, -1, 1},
    {"moe_route", kPrimitive, kPure, infer_moe_route, 1, 1},
    {"moe_matmul", kPrimitive, kPure, infer_moe_matmul, 3, 3},
    {"moe_combine", kPrimitive, kPure, infer_moe_combine, 2, 2},
    {"rms_norm_mul", kComposite, kPure, infer_rms_norm_mul, 2, 2},
    {"matmul_group", kComposite, kPure, infer_matmul_group, 3, 9},
    {"matmul_add", kComposite, kPure, infer_matmul_add, 4, 4},
    {"gated_act", kComposite, kPure, infer_gated_act, 2, 2},
    {"rope_store", kComposite, kWrites, infer_rope_store, 9, 9, 6, 7},
    {"attention", kComposite, kPure, infer_attention, 6, 6, 1, 2},
    {"norm_matmul_group", kComposite, kPure, infer_norm_matmul_group, 4, 10},
}};

// A shape is made of 31-bit attributes and checked tensor dimensions, but their product is not: it is bounded here so
// that sizes in bytes cannot overflow.
constexpr int64_t kMaxValues = int64_t{1} << 56;

bool too_large(const Shape& shape) {
  int64_t n = 1;
  for (int i = 0; i < shape.rank; ++i) {
    if (__builtin_mul_overflow(n, shape[i], &n) || n > kMaxValues) return true;
  }
  return false;
}

}  // namespace

const OpInfo& op_info(Op op) { return kTable[static_cast<size_t>(op)]; }

Result<std::vector<ValueDesc>> infer_outputs(Op op, const Attrs& attrs, const std::vector<ValueDesc>& in) {
  const OpInfo& info = op_info(op);
  const int n = static_cast<int>(in.size());
  if (n < info.min_inputs || n > info.max_inputs) {
    return make_error(ErrorCode::kInvalidArgument, "[{}] {} inputs, expected {}..{}", info.name, n, info.min_inputs,
                      info.max_inputs);
  }
  Descs out = MINFER_TRY(info.infer(attrs, in));
  for (const ValueDesc& d : out) {
    if (too_large(d.shape))
      return make_error(ErrorCode::kInvalidArgument, "[{}] output {} is too large", info.name, d.shape.str());
  }
  return out;
}

std::string op_text(Op op, const std::vector<ValueDesc>& in) {
  std::string s = std::string("[") + op_info(op).name + "]";
  for (const ValueDesc& d : in) {
    s += " ";
    if (d.absent) {
      s += "-";
      continue;
    }
    if (d.dtype != DType::kF32) s += std::string(dtype_info(d.dtype).name) + " ";
    s += d.shape.str();
  }
  return s;
}

const char* act_name(Act act) {
  switch (act) {
    case Act::kSilu: return "silu";
    case Act::kGeluTanh: return "gelu_tanh";
    case Act::kGeluErf: return "gelu_erf";
    case Act::kGeluQuick: return "gelu_quick";
    case Act::kRelu: return "relu";
    case Act::kRelu2: return "relu2";
    case Act::kTanh: return "tanh";
    case Act::kSigmoid: return "sigmoid";
  }
  return "?";
}

const char* rope_style_name(RopeStyle style) { return style == RopeStyle::kNeox ? "neox" : "interleaved"; }

}  // namespace minfer
