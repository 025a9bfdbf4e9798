// Block layouts of the quantized formats, as they lie in a GGUF file (little-endian, packed, any alignment).
// Layout: every struct is exactly `dtype_info(t).block_bytes` bytes; f16 fields hold the raw 16 bits.
//         "value i" is the i-th of the block's values in row order. Tables and formulas: docs/formats.md.
// Note:   blocks in a mapped file may start at any byte address: read them with memcpy or unaligned loads.
#pragma once

#include <bit>
#include <cstdint>

namespace minfer::quant {

inline constexpr int kBlock = 32;       // values of a small block
inline constexpr int kSuper = 256;      // values of a super-block (K-quants, iq4_xs)
inline constexpr int kScaleBytes = 12;  // 16 six-bit numbers: 8 scales + 8 minimums, or 16 scales

// value = d * (q - 8); q: low nibbles are values 0..15, high nibbles 16..31
struct BlockQ4_0 {
  uint16_t d;  // f16 scale
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_0) == 18);

// value = d * q + m; nibbles as in q4_0
struct BlockQ4_1 {
  uint16_t d;  // f16 scale
  uint16_t m;  // f16 minimum
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_1) == 20);

// value = d * (q - 16); q = nibble (as in q4_0) + 16 * bit i of qh (little-endian u32)
struct BlockQ5_0 {
  uint16_t d;     // f16 scale
  uint8_t qh[4];  // bit 4 of value i is bit i
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ5_0) == 22);

// value = d * q + m; q as in q5_0
struct BlockQ5_1 {
  uint16_t d;  // f16 scale
  uint16_t m;  // f16 minimum
  uint8_t qh[4];
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ5_1) == 24);

// value = d * q
struct BlockQ8_0 {
  uint16_t d;  // f16 scale
  int8_t qs[32];
};
static_assert(sizeof(BlockQ8_0) == 34);

// 16 sub-blocks of 16 values; value = (d * (scales[s] & 15)) * q - (dmin * (scales[s] >> 4)), s = i / 16.
// q of value i = 128*h + 32*j + l (h 0..1, j 0..3, l 0..31): bits 2j..2j+1 of qs[32*h + l].
struct BlockQ2_K {
  uint8_t scales[16];  // low nibble: scale, high nibble: minimum
  uint8_t qs[64];
  uint16_t d;     // f16 scale of the scales
  uint16_t dmin;  // f16 scale of the minimums
};
static_assert(sizeof(BlockQ2_K) == 84);

// 16 sub-blocks of 16 values; value = (d * (sc[i / 16] - 32)) * (q - (bit ? 0 : 4)).
// q of value i = 128*h + 32*j + l: bits 2j..2j+1 of qs[32*h + l]; bit: bit 4*h + j of hmask[l].
// sc[s], six bits: low four in scales[s % 8] (low nibble for s < 8, high nibble above), high two in bits
// 2*(s / 4) .. 2*(s / 4) + 1 of scales[8 + s % 4].
struct BlockQ3_K {
  uint8_t hmask[32];
  uint8_t qs[64];
  uint8_t scales[kScaleBytes];
  uint16_t d;  // f16 scale of the scales
};
static_assert(sizeof(BlockQ3_K) == 110);

// 8 sub-blocks of 32 values; value = (d * sc[s]) * q - (dmin * m[s]), s = i / 32; sc and m: unpack_scales_k4.
// q of value i = 64*g + 32*n + l (g 0..3, n 0..1, l 0..31): low (n = 0) or high nibble of qs[32*g + l].
struct BlockQ4_K {
  uint16_t d;     // f16 scale of the scales
  uint16_t dmin;  // f16 scale of the minimums
  uint8_t scales[kScaleBytes];
  uint8_t qs[128];
};
static_assert(sizeof(BlockQ4_K) == 144);

// As q4_k with a fifth bit: bit s of qh[l], s = i / 32, l = i % 32.
struct BlockQ5_K {
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[kScaleBytes];
  uint8_t qh[32];
  uint8_t qs[128];
};
static_assert(sizeof(BlockQ5_K) == 176);

// 16 sub-blocks of 16 values; value = (d * scales[i / 16]) * (q - 32).
// q of value i = 128*h + 64*n + 32*k + l (h, n, k 0..1; l 0..31): low four bits are the low (n = 0) or high
// nibble of ql[64*h + 32*k + l], high two bits are bits 2*(2*n + k) .. +1 of qh[32*h + l].
struct BlockQ6_K {
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  uint16_t d;  // f16 scale of the scales
};
static_assert(sizeof(BlockQ6_K) == 210);

// value = d * kIq4Values[q]; nibbles as in q4_0
struct BlockIQ4_NL {
  uint16_t d;  // f16 scale
  uint8_t qs[16];
};
static_assert(sizeof(BlockIQ4_NL) == 18);

// 8 sub-blocks of 32 values; value = (d * (ls[s] - 32)) * kIq4Values[q], s = i / 32.
// ls[s], six bits: low four in nibble s of scales_l (low nibble first), high two in bits 2s..2s+1 of scales_h.
// q: within sub-block s the 16 bytes qs[16*s ..] hold nibbles as in q4_0.
struct BlockIQ4_XS {
  uint16_t d;  // f16 scale of the scales
  uint16_t scales_h;
  uint8_t scales_l[4];
  uint8_t qs[128];
};
static_assert(sizeof(BlockIQ4_XS) == 136);

// value = 2^(e - 128) * kMxfp4Values[q]  (the table holds twice the e2m1 value); nibbles as in q4_0
struct BlockMXFP4 {
  uint8_t e;  // e8m0: power-of-two scale, bias 127
  uint8_t qs[16];
};
static_assert(sizeof(BlockMXFP4) == 17);

// Code values of iq4_nl and iq4_xs: sixteen levels, denser near zero.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// Twice the values of e2m1 (OCP MX): sign bit 3, so that all are integers.
inline constexpr int8_t kMxfp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// 2^(e - 128): half the e8m0 scale, to go with the doubled code values. Exact; e = 0 is 2^-128, a subnormal f32.
inline float mxfp4_scale(uint8_t e) {
  const uint32_t bits = e == 0 ? 0x00200000u : e == 1 ? 0x00400000u : static_cast<uint32_t>(e - 1) << 23;
  return std::bit_cast<float>(bits);
}

// Six-bit scales and minimums of q4_k and q5_k. Entries 0..3 of both lie in the low six bits of bytes 0..3 and
// 4..7; entries 4..7 have their low four bits in the nibbles of bytes 8..11 (scale low, minimum high) and their
// high two bits in the top of bytes 0..3 (scale) and 4..7 (minimum).
inline void unpack_scales_k4(const uint8_t* packed,  // [12]
                             uint8_t* sc,            // [8]
                             uint8_t* m) {           // [8]
  for (int j = 0; j < 4; ++j) {
    sc[j] = packed[j] & 63;
    m[j] = packed[4 + j] & 63;
    sc[4 + j] = static_cast<uint8_t>((packed[8 + j] & 15) | ((packed[j] >> 6) << 4));
    m[4 + j] = static_cast<uint8_t>((packed[8 + j] >> 4) | ((packed[4 + j] >> 6) << 4));
  }
}

inline void pack_scales_k4(const uint8_t* sc,  // [8], 0..63
                           const uint8_t* m,   // [8], 0..63
                           uint8_t* packed) {  // [12]
  for (int j = 0; j < 4; ++j) {
    packed[j] = static_cast<uint8_t>(sc[j] | ((sc[4 + j] >> 4) << 6));
    packed[4 + j] = static_cast<uint8_t>(m[j] | ((m[4 + j] >> 4) << 6));
    packed[8 + j] = static_cast<uint8_t>((sc[4 + j] & 15) | ((m[4 + j] & 15) << 4));
  }
}

// The sixteen signed scales of q3_k, -32..31.
inline void unpack_scales_q3_k(const uint8_t* packed,  // [12]
                               int8_t* sc) {           // [16]
  for (int s = 0; s < 16; ++s) {
    const int low = s < 8 ? packed[s] & 15 : packed[s - 8] >> 4;
    const int high = (packed[8 + s % 4] >> (2 * (s / 4))) & 3;
    sc[s] = static_cast<int8_t>((low | (high << 4)) - 32);
  }
}

// The eight signed scales of iq4_xs, -32..31.
inline void unpack_scales_iq4_xs(const BlockIQ4_XS& b,
                                 int8_t* sc) {  // [8]
  for (int s = 0; s < 8; ++s) {
    const int low = (b.scales_l[s / 2] >> (4 * (s % 2))) & 15;
    const int high = (b.scales_h >> (2 * s)) & 3;
    sc[s] = static_cast<int8_t>((low | (high << 4)) - 32);
  }
}

}  // namespace minfer::quant
