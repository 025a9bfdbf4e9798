// Where a K or V value lies inside its region. Shared by every host backend, so that regions can be saved,
// restored and read by any of them.
// Layout: a region holds n_slots rows (a multiple of 16) of n_head_kv heads of head_dim values.
//   Slots are grouped by 16; inside a group each KV head is contiguous ("head block").
//   K, float types: head block = [head_dim][16 slots]           one vector lane can own one position
//   V, float types: head block = [16 slots][head_dim]           one vector lane can own one feature
//   K, q8_0: head block = per 32 features: 16 f16 scales, then int8 [8][16 slots][4]
//            (4 consecutive features of one slot together: one lane of a 4-way int8 dot product)
//   V, q8_0: head block = f16 scales [16 slots][head_dim/32], then int8 [16 slots][head_dim]
//   Both q8_0 forms take 34 bytes per 32 values.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace minfer {

inline constexpr int64_t kKvGroup = 16;  // slots interleaved together: f32 lanes of a 512-bit vector

// Bytes of the head block of one KV head. Requires: head_dim % 32 == 0 for q8_0.
inline int64_t kv_head_block_bytes(DType t, int64_t head_dim) { return kKvGroup * dtype_row_bytes(t, head_dim); }

// Byte offset of the head block that holds `slot` of `head`.
inline int64_t kv_head_block_offset(DType t, int64_t slot, int64_t head, int64_t n_head_kv, int64_t head_dim) {
  return (slot / kKvGroup * n_head_kv + head) * kv_head_block_bytes(t, head_dim);
}

// Index (in values) of feature i of `slot` inside a K head block / V head block of a float type.
inline int64_t kv_k_index(int64_t slot, int64_t i) { return i * kKvGroup + slot % kKvGroup; }
inline int64_t kv_v_index(int64_t slot, int64_t i, int64_t head_dim) { return slot % kKvGroup * head_dim + i; }

// Byte offsets inside q8_0 head blocks.
inline int64_t kv_k_q8_scale(int64_t slot, int64_t i) { return i / 32 * 544 + slot % kKvGroup * 2; }
inline int64_t kv_k_q8_code(int64_t slot, int64_t i) {
  return i / 32 * 544 + 32 + (i % 32 / 4 * kKvGroup + slot % kKvGroup) * 4 + i % 4;
}
inline int64_t kv_v_q8_scale(int64_t slot, int64_t i, int64_t head_dim) {
  return (slot % kKvGroup * (head_dim / 32) + i / 32) * 2;
}
inline int64_t kv_v_q8_code(int64_t slot, int64_t i, int64_t head_dim) {
  return kKvGroup * (head_dim / 32) * 2 + slot % kKvGroup * head_dim + i;
}

// Bytes of a whole region.
inline int64_t kv_region_bytes(DType t, int64_t n_slots, int64_t n_head_kv, int64_t head_dim) {
  return n_slots / kKvGroup * n_head_kv * kv_head_block_bytes(t, head_dim);
}

}  // namespace minfer
