// Packed weights: matmul weights with 16 output rows interleaved, so that one vector lane owns one row.
// Layout:  rows are padded to a multiple of 16 with zeros; a row group of 16 rows is contiguous and takes exactly as
//   many bytes as its 16 rows in the file (16 * dtype_row_bytes). Expert weights are one such matrix per expert.
//   "u32[16]" is one 64-byte vector: four codes of one row per lane. A block of 32 values is 8 groups of 4 values.
//   "nibbles" u32[4][16]: vector j holds group j in the low and group j + 4 in the high nibbles.
//   "bits"    u32[16]: bit g of a byte belongs to group g.       "pairs" u32[2][16]: two bits per group; 4 groups each.
//   f32, f16, bf16   [k][16]
//   per block of 32:
//   q8_0             f16 d[16], codes + 128 u32[8][16]
//   q4_0, iq4_nl     f16 d[16], nibbles           q4_1   f16 d[16], f16 m[16], nibbles
//   q5_0             f16 d[16], nibbles, bits     q5_1   f16 d[16], f16 m[16], nibbles, bits
//   mxfp4            e8m0 e[16], nibbles
//   per 256 values:
//   q4_k, q5_k       f16 d[16], f16 dmin[16], low four bits of scale | minimum << 4: u8[8][16], high two bits u32[16]
//                    (scale of sub-block s at bit 2s, minimum at 16 + 2s), then 8 times: nibbles (q5_k: and bits)
//   q6_k             f16 d[16], then 8 times: i8 scale of the first half[16], of the second half[16], nibbles, pairs
//   q3_k             f16 d[16], low four bits of both halves' scales u8[8][16], high two bits u32[16] (half h of block
//   b
//                    at bit 4b + 2h), then 8 times: pairs, bits
//   q2_k             f16 d[16], f16 dmin[16], then 8 times: u8 scale | minimum << 4 of the first half[16], of the
//                    second[16], pairs
//   iq4_xs           f16 d[16], low four bits of the scales u32[16] (nibble s), high two bits u16[16], then 8 times:
//   nibbles
// Errors:  memory; a type without kernels; a row length the block size does not divide.
// Threads: pack_weight uses the pool; the rest is pure.
#pragma once

#include <cstdint>
#include <optional>

#include "backend/backend.h"
#include "backend/cpu/matmul_kernels.h"
#include "base/thread_pool.h"
#include "tensor/view.h"

namespace minfer::cpu {

// The kernel table's index of a type, or kFmtCount where matmul has no kernels for it.
PackedFormat packed_format(DType t);
inline bool packed_is_float(PackedFormat f) { return f <= kFmtBF16; }

// Bytes of one row group of rows of k values.
inline int64_t packed_group_bytes(DType t, int64_t k) { return kRowGroup * dtype_row_bytes(t, k); }
inline int64_t packed_groups(int64_t m) { return (m + kRowGroup - 1) / kRowGroup; }

// Packs a plain weight [m, k] or expert weights [n_expert, m, k]. The source is left as it is.
Result<std::optional<PackedWeight>> pack_weight(const TensorView& plain, ThreadPool& pool);

}  // namespace minfer::cpu
