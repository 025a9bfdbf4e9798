// The op kernels of the cpu backend but the matmuls: per op and instruction set a list, best first, possibly empty.
// They check inputs, split the work over the workers and call the micro-kernels of ../kernels.h.
// Left to the reference, which splits rows over the workers too: embed, get_rows and rope_table (3.3, 1.4 and 3.6 us of
// a decode step of 10 ms, SmolLM2-135M), and the parts of attention (no graph that the cpu backend runs has them).
#pragma once

#include <span>
#include <string>

#include "backend/cpu/kernels.h"
#include "backend/kernel.h"
#include "base/cpu_info.h"

namespace minfer::cpu {

std::span<const Kernel> elementwise_kernels(Op op, IsaLevel isa);  // add mul scale unary softcap gated_act moe_combine
std::span<const Kernel> row_kernels(Op op, IsaLevel isa);          // rms_norm rms_norm_mul rope
std::span<const Kernel> kv_kernels(Op op, IsaLevel isa);           // kv_store_k kv_store_v rope_store
std::span<const Kernel> attention_kernels(Op op, IsaLevel isa);    // attention
std::span<const Kernel> moe_route_kernels(Op op, IsaLevel isa);    // moe_route

// --- shared by the op files ---

// Heads longer than this are left to the reference: the kernels keep one head on the stack.
inline constexpr int64_t kMaxHeadDim = 1024;

// The table index of a storage type of K or V, or an empty optional's stand-in: -1.
inline int kv_type_index(DType t) {
  switch (t) {
    case DType::kF32: return static_cast<int>(KvType::kF32);
    case DType::kF16: return static_cast<int>(KvType::kF16);
    case DType::kBF16: return static_cast<int>(KvType::kBF16);
    case DType::kQ8_0: return static_cast<int>(KvType::kQ8_0);
    default: return -1;
  }
}

// Why a region of this type with heads of head_dim cannot be served; empty when it can.
Refusal kv_refusal(DType t, int64_t head_dim);

// " of layer 3", empty outside the layers: for messages.
std::string layer_text(const Attrs& attrs);

// Picks list<isa>(op) for a template written over IsaLevel.
#define MINFER_LIST_BY_ISA(list, op, isa)                         \
  switch (isa) {                                                  \
    case IsaLevel::kScalar: return list<IsaLevel::kScalar>(op);   \
    case IsaLevel::kAvx2: return list<IsaLevel::kAvx2>(op);       \
    case IsaLevel::kAvxVnni: return list<IsaLevel::kAvxVnni>(op); \
    case IsaLevel::kAvx512: return list<IsaLevel::kAvx512>(op);   \
    case IsaLevel::kNeon: return list<IsaLevel::kNeon>(op);       \
  }                                                               \
  return {}

template <IsaLevel I>
inline constexpr const char* kIsaText = I == IsaLevel::kAvx512    ? "avx512"
                                        : I == IsaLevel::kAvxVnni ? "avxvnni"
                                        : I == IsaLevel::kAvx2    ? "avx2"
                                        : I == IsaLevel::kNeon    ? "neon"
                                                                  : "scalar";

}  // namespace minfer::cpu
