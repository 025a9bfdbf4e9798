// MatmulKernels: the table through which the matmul ops reach the code of one instruction set. This is the only
// project header the ISA folders' matmul files include besides their own *-inl.h.
// Layout:  packed weights are described in pack.h; the two activation forms below.
// Threads: every function is pure apart from what it writes through its arguments.
// Source:  docs/numerics.md, "Matmul with block-quantized weights" and "Matmul with float weights".
#pragma once

#include <cstddef>
#include <cstdint>

namespace minfer::cpu {

inline constexpr int kRowGroup = 16;       // rows interleaved: f32 lanes of a 512-bit vector, one output row each
inline constexpr int kMaxTile = 16;        // tokens of the widest tile: with 8 weight vectors still in 32 registers
inline constexpr int kMaxGroups = 4;       // row groups a float kernel may take at once
inline constexpr int64_t kSegment = 1024;  // values of k per partial sum (docs/numerics.md)
inline constexpr int kActBlock = 32;       // values per quantized activation block

// Storage formats of weights, in the order of the kernel table.
enum PackedFormat : int {
  kFmtF32,
  kFmtF16,
  kFmtBF16,
  kFmtQ4_0,
  kFmtQ4_1,
  kFmtQ5_0,
  kFmtQ5_1,
  kFmtQ8_0,
  kFmtQ2_K,
  kFmtQ3_K,
  kFmtQ4_K,
  kFmtQ5_K,
  kFmtQ6_K,
  kFmtIQ4_NL,
  kFmtIQ4_XS,
  kFmtMXFP4,
  kFmtCount,
};

// The float form of a tile of T tokens: f32 [k][T].
//
// The quantized form (q8a) of a tile of T tokens: one record per block of 32 values of k, each record holding arrays
// over the tile's tokens at these offsets (bytes, times T):
//   0   int8 [T][32]  codes q
//   32  f32  [T]      d
//   36  f32  [T]      s = d * sum(q)
//   40  i16  [T][2]   h0, h1: sums of the first and the last 16 codes
//   44  i32  [T]      -8   * sum(q)   start values of the integer dot product for weights stored with a bias:
//   48  i32  [T]      -16  * sum(q)     sum((w + bias) * q) - bias * sum(q) = sum(w * q), exactly
//   52  i32  [T]      -127 * sum(q)
//   56  i32  [T]      -128 * sum(q)
inline constexpr int kActD = 32, kActS = 36, kActH = 40, kActN8 = 44, kActN16 = 48, kActN127 = 52, kActN128 = 56;
inline constexpr int kActBytes = 60;  // bytes per token and block

// One call of a tile kernel: `rows` output rows times `tokens` tokens over one segment of k.
struct Tile {
  const uint8_t* w;   // packed weights (or unpacked codes) of the first row group, at the segment's first block
  int64_t w_stride;   // bytes from one row group to the next
  const uint8_t* x;   // activation tile at the segment's first block (value, for the float form)
  int64_t k;          // values in the segment, 1..kSegment
  int width;          // T of the activation tile
  int tokens;         // of them valid: 1..width
  int groups;         // row groups: 1..FormatKernels::groups
  int rows;           // valid rows: 16 * (groups - 1) < rows <= 16 * groups
  float* const* y;    // [tokens] pointers to [rows]
  bool first;         // first segment: y = acc, else y = y + acc
  const float* bias;  // [rows] or null; added after the last segment: null in all others
  const float* const* residual;  // [tokens] pointers to [rows] or null; added after the bias, as above
  // Packed weights that the caller works on next: kernels may fetch next_bytes of them ahead per block of 32 values.
  const uint8_t* next;
  int next_bytes;  // 0: nothing to fetch
};
using TileFn = void (*)(const Tile& tile);

struct FormatKernels {
  TileFn tile[kMaxTile + 1];  // by tile width; null where the width is not offered
  int groups;                 // row groups a call of `tile` takes at most

  // The form for many tokens, or null: codes and scales of one row group expanded once and used for every tile.
  void (*unpack)(const uint8_t* w,     // packed row group at a segment's first block
                 int64_t k,            // values in the segment
                 uint8_t* dst);        // [k / 32][unpacked_bytes], 64-byte aligned
  int unpacked_bytes;                  // per block of 32 values of 16 rows
  TileFn tile_unpacked[kMaxTile + 1];  // groups = 1
  int unpack_from;                     // number of tokens from which it pays
};

struct MatmulKernels {
  const char* isa;
  // Tile widths offered, ascending, ending in 0; the first is 1. Every format has a kernel for each of them: direct
  // ones for steps of fewer than unpack_from tokens (any number where there is no unpacked form), unpacked ones from
  // there on.
  int widths[kMaxTile + 1];        // block formats
  int float_widths[kMaxTile + 1];  // float formats

  // Quantizes k values (a multiple of 32) of `tokens` rows into the q8a form of width `width`; missing tokens get
  // zeros.
  void (*quantize)(const float* const* x,  // [tokens] pointers to [k]
                   int tokens, int width, int64_t k,
                   uint8_t* dst);  // [k / 32][kActBytes * width]
  // Interleaves rows into the float form; missing tokens get zeros.
  void (*interleave)(const float* const* x,  // [tokens] pointers to [k]
                     int tokens, int width, int64_t k,
                     float* dst);  // [k][width]
  FormatKernels formats[kFmtCount];
  // y = x / sqrt(mean(x^2) + eps) * w, all [d]: of the row kernels, set by matmul/matmul_ops.cpp.
  void (*rms_norm)(const float* x, const float* w, float eps, float* y, int64_t d);
};

// Each fills a zeroed table; safe to call on a processor without the instructions.
void fill_matmul_kernels_generic(MatmulKernels* k);
void fill_matmul_kernels_avx2(MatmulKernels* k);
void fill_matmul_kernels_avxvnni(MatmulKernels* k);
void fill_matmul_kernels_avx512(MatmulKernels* k);
void fill_matmul_kernels_neon(MatmulKernels* k);

}  // namespace minfer::cpu
