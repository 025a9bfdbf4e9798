// Tables of micro-kernels, one set per instruction set: everything the cpu backend computes but the matmuls.
// The op kernels in ops/ split the work, check the inputs and call these; the bodies stand once in inl/ and are
// compiled in generic/, avx2/, avxvnni/ (what differs from avx2/), avx512/ and neon/ with each folder's flags and
// vector type. Layout: rows and heads are contiguous f32; head blocks of K and V as tensor/kv_layout.h says. Errors:
// none here: the op kernels have checked everything. Threads: pure functions over the memory they are given. Note: the
// ISA folders include this header, so it holds declarations and plain structs only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace minfer::cpu {

// Storage types of K and V, in the order of the tables below.
enum class KvType : uint8_t { kF32, kF16, kBF16, kQ8_0 };
inline constexpr int kKvTypeCount = 4;
inline constexpr int kActCount = 8;         // graph Act
inline constexpr int kTilePositions = 256;  // positions of an attention tile (docs/numerics.md)
inline constexpr int kGroupSlots = 16;      // slots of a head block

struct ElementwiseKernels {
  // y may be a or b. n is any count.
  void (*add)(const float* a, const float* b, float* y, int64_t n);
  void (*mul)(const float* a, const float* b, float* y, int64_t n);
  void (*scale)(const float* x, float s, float* y, int64_t n);
  void (*scale_add)(const float* x, float s, float* y, int64_t n);  // y = fma(x, s, y)
  // Indexed by Act.
  void (*unary[kActCount])(const float* x, float* y, int64_t n);
  void (*gated[kActCount])(const float* gate, const float* up, float* y, int64_t n);
  void (*softcap)(const float* x, float c, float* y, int64_t n);
};

struct RowKernels {
  // y = x / sqrt(mean(x^2) + eps), times w when w is not null. y may be x.
  void (*rms_norm)(const float* x,  // [d]
                   const float* w,  // [d] or null
                   float eps, float* y, int64_t d);
  // One head. y may be x. NeoX: pairs (i, i + half), cos and sin [half].
  void (*rope_neox)(const float* x, const float* cos, const float* sin, float* y, int64_t half);
  // Pairs (2i, 2i + 1): t1 = cos_0 sin_0 cos_1 sin_1 ..., t2 = -sin_0 cos_0 -sin_1 cos_1 ..., both [2 * half].
  void (*rope_interleaved)(const float* x, const float* t1, const float* t2, float* y, int64_t half);
  // p = exp(x - max) / sum, both [n], n > 0.
  void (*softmax)(const float* x, float* p, int64_t n);
};

struct KvKernels {
  // Indexed by KvType: writes one row of one head into slot `slot` (0..15) of its head block.
  void (*store_k[kKvTypeCount])(const float* x, std::byte* head_block, int slot, int64_t head_dim);
  void (*store_v[kKvTypeCount])(const float* x, std::byte* head_block, int slot, int64_t head_dim);
};

// One tile of one KV head against n_rows queries (a row is a query head of a token).
struct AttnTile {
  const std::byte* k[kTilePositions / kGroupSlots];  // head blocks; set where a row can see a position of the group
  const std::byte* v[kTilePositions / kGroupSlots];
  // K head blocks that will be wanted next, to be fetched into the cache while V is mixed; null for none. V's blocks of
  // this tile are fetched while the scores are computed.
  const std::byte* next_k[kTilePositions / kGroupSlots];
  int64_t k_bytes, v_bytes;  // of a head block
  int64_t head_dim;
  int n_rows;
  int group_begin, group_end;  // groups that some row sees
  const int32_t* begin;        // [n_rows] positions of the tile a row sees: [begin, end), empty when equal
  const int32_t* end;          // [n_rows]
  // Queries for float K: [n_rows][q_stride].
  const float* q;
  int64_t q_stride;
  // Queries for q8_0 K: codes [n_rows][head_dim], per block of 32 the scale and the sum of the codes.
  const int8_t* q_codes;
  const float* q_d;      // [n_rows][head_dim / 32]
  const int32_t* q_sum;  // [n_rows][head_dim / 32]
  float scale, softcap;
  float* s;  // [n_rows][256] scores, then weights
  float* m;  // [n_rows] maximum of the tile
  float* l;  // [n_rows] sum of the weights
  float* o;  // [n_rows][o_stride], o_stride a multiple of 16
  int64_t o_stride;
};

struct AttnKernels {
  // acc of every position of groups [group_begin, group_end) for every row: fills s (not yet scaled).
  void (*scores[kKvTypeCount])(const AttnTile& tile);
  // Scales, caps and masks the scores, then s = weights, m, l. Rows that see nothing are left alone.
  void (*softmax)(const AttnTile& tile);
  // o = weighted sum of the visible V rows.
  void (*mix[kKvTypeCount])(const AttnTile& tile);
  // Merges a tile's (m, l, o) into (M, L, O).
  void (*merge)(float m, float l, const float* o, float* big_m, float* big_l, float* big_o, int64_t head_dim);
  void (*divide)(const float* o, float l, float* y, int64_t head_dim);  // y = o / l
  // q8a of one head: codes [n], scales and sums [n / 32].
  void (*quantize)(const float* x, int8_t* codes, float* d, int32_t* sum, int64_t n);
};

struct CpuKernels {
  const ElementwiseKernels& elementwise;
  const RowKernels& row;
  const KvKernels& kv;
  const AttnKernels& attn;
};

extern const ElementwiseKernels kElementwiseGeneric, kElementwiseAvx2, kElementwiseAvx512, kElementwiseNeon;
extern const RowKernels kRowGeneric, kRowAvx2, kRowAvx512, kRowNeon;
extern const KvKernels kKvGeneric, kKvAvx2, kKvAvx512, kKvNeon;
extern const AttnKernels kAttnGeneric, kAttnAvx2, kAttnAvxVnni, kAttnAvx512, kAttnNeon;

}  // namespace minfer::cpu
