// The op table: every operation of a graph, its inputs, outputs, shape rule and, for composites, its definition
// in primitives.
// Shapes are outermost first. matmul(x, w) means x[n, k] * w[m, k]^T -> [n, m].
// n = tokens of the step (0 allowed), m = rows wanted, H = n_head, G = n_head_kv, D = head_dim.
// Element-wise ops (add, mul, scale, unary, softcap, gated_act) take any rank of two or more: [n, d] stands for rows of
// d. Source: docs/numerics.md says what each op computes, to the bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace minfer {

enum class Op : uint8_t {
  // --- primitives: every backend has them, `ref` defines them -------------------------------------------------
  kEmbed,      // ids i32[n], table[n_vocab, d]                      -> f32[n, d]
  kGetRows,    // x f32[n, d], rows i32[m]                           -> f32[m, d]
  kMatMul,     // x f32[n, k], w[m, k]                               -> f32[n, m]
  kAdd,        // a f32[n, d], b f32[n, d] or f32[d]                 -> f32[n, d]
  kMul,        // a f32[n, d], b f32[n, d] or f32[d] or f32[group]   -> f32[n, d]   (b repeats along the row)
  kScale,      // x f32[n, d]                                        -> x * attrs.scale
  kRmsNorm,    // x f32[n, d]  over groups of attrs.group (0 = d)    -> x / sqrt(mean(x^2) + attrs.eps)
  kUnary,      // x f32[n, d]                                        -> attrs.act(x)
  kSoftcap,    // x f32[n, d]                                        -> c * tanh(x / c), c = attrs.softcap
  kRopeTable,  // positions i32[n], inv_freq f64[n_rot/2]            -> f32[n, n_rot]: cos[n_rot/2], sin[n_rot/2], times
               // attrs.scale
  kRope,       // x f32[n, heads*D], table f32[n, n_rot]             -> f32[n, heads*D]  attrs: head_dim, rope_style
  kKvStoreK,   // x f32[n, G*D], region K, slots i32[n]              -> nothing (writes the region)  attrs: n_head_kv,
               // head_dim
  kKvStoreV,   // x f32[n, G*D], region V, slots i32[n]              -> nothing
  kAttnScores,   // q f32[n, H*D], region K, positions i32[n], seqs i32[n], block_table i32[n_seq, pages] -> f32[n, H,
                 // n_kv]
                 //   attrs: n_head, n_head_kv, head_dim, scale, softcap, window, page_size, n_kv
  kAttnSoftmax,  // scores f32[n, H, n_kv], positions i32[n]           -> f32[n, H, n_kv + 2*n_kv/256]: weights, then
                 // (max, sum) per tile
                 //   attrs: window
  kAttnMix,      // weights (as above), region V, positions, seqs, block_table -> f32[n, H*D]
  kMoeRoute,     // logits f32[n, n_expert]                            -> ids i32[n, top_k], weights f32[n, top_k]
  kMoeMatMul,    // x f32[n, k] or f32[n, top_k, k], w[n_expert, m, k], ids i32[n, top_k] -> f32[n, top_k, m]
  kMoeCombine,   // y f32[n, top_k, d], weights f32[n, top_k]          -> f32[n, d]
  // --- composites: each has a decompose(); a backend may override them -----------------------------------------
  kRmsNormMul,   // x f32[n, d], w f32[d] or f32[group]                -> f32[n, d]
  kMatMulGroup,  // x f32[n, k], w_0..w_{g-1}, b_0..b_{g-1} (absent allowed); attrs.n_group = g -> y_0..y_{g-1}
  kMatMulAdd,    // x f32[n, k], w[m, k], bias f32[m] (absent allowed), residual f32[n, m] (absent allowed) -> f32[n, m]
  kGatedAct,     // gate f32[n, d], up f32[n, d]                       -> attrs.act(gate) * up
  kRopeStore,    // q?, k, v, q_norm f32[D]?, k_norm f32[D]?, table, region K, region V, slots -> q' f32[n, H*D]
                 //   (norms over heads with attrs.eps, rope on q and k, then both stores; without q there is no output
                 //   and no q_norm)  attrs: n_head, n_head_kv, head_dim, rope_style, eps
  kAttention,    // q f32[n, H*D], region K, region V, positions, seqs, block_table -> f32[n, H*D]
                 //   attrs: those of kAttnScores; n_kv is read by the decomposition only
  kNormMatMulGroup,  // x f32[n, k], gains f32[k], w_0..w_{g-1}, b_0..b_{g-1} (absent allowed) -> y_0..y_{g-1}
                     //   matmul_group of rms_norm_mul(x, gains)  attrs: eps, n_group
};
inline constexpr int kOpCount = static_cast<int>(Op::kNormMatMulGroup) + 1;

enum class Act : uint8_t { kSilu, kGeluTanh, kGeluErf, kGeluQuick, kRelu, kRelu2, kTanh, kSigmoid };
enum class RopeStyle : uint8_t { kInterleaved, kNeox };  // pairs (2i, 2i+1) / (i, i + n_rot/2)

// Parameters of a node. Every op reads only the fields named in its row above; the rest keep their defaults, so
// that two equal nodes have equal attributes.
struct Attrs {
  float eps = 0.0f;
  float scale = 1.0f;    // kScale, kRopeTable, attention (score scale)
  float softcap = 0.0f;  // kSoftcap; attention scores (0 = none)
  Act act = Act::kSilu;
  RopeStyle rope_style = RopeStyle::kNeox;
  int32_t group = 0;  // kRmsNorm, kRmsNormMul: values per group, 0 = whole row
  int32_t n_head = 0;
  int32_t n_head_kv = 0;
  int32_t head_dim = 0;
  int32_t window = 0;      // sliding window in positions, 0 = none: position p sees (p - window, p]
  int32_t page_size = 0;   // slots per entry of the block table, a multiple of 16
  int32_t n_kv = 0;        // kAttnScores: positions covered by its output, a multiple of 256
  int32_t top_k = 0;       // kMoe*
  bool norm_topk = false;  // kMoeRoute: weights of the chosen experts sum to 1 (softmax over all, then renormalise)
  int32_t n_group = 0;     // kMatMulGroup, kNormMatMulGroup
  int32_t layer = -1;      // for messages, traces and dumps; -1 outside the layers
  bool operator==(const Attrs&) const = default;
};

inline constexpr int kMaxInputs = 12;
inline constexpr int kMaxOutputs = 4;

// What is known of a value when shapes are inferred and kernels chosen.
struct ValueDesc {
  DType dtype = DType::kF32;
  Shape shape;
  bool absent = false;
};

struct OpInfo {
  const char* name;  // "rms_norm"
  bool composite;
  bool side_effect;  // writes a KV region; never removed, never reordered
  // Checks inputs and attributes; fills the outputs. Errors: which input, found, expected.
  Result<std::vector<ValueDesc>> (*infer)(const Attrs& attrs, const std::vector<ValueDesc>& in);
  // How many input values a node may have.
  int min_inputs, max_inputs;
  // Which inputs are KV regions (-1 = none); those take nothing else, and no other input takes a region.
  int region_k = -1, region_v = -1;
};

const OpInfo& op_info(Op op);

// The shape rule with the number of inputs checked first: what the builder and verify() use.
Result<std::vector<ValueDesc>> infer_outputs(Op op, const Attrs& attrs, const std::vector<ValueDesc>& in);

const char* act_name(Act act);                 // "silu"
const char* rope_style_name(RopeStyle style);  // "neox"

// "[rms_norm] [512, 1024]" style text for messages and graphs.
std::string op_text(Op op, const std::vector<ValueDesc>& in);

}  // namespace minfer
