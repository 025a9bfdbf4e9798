// How each packed block format is opened for the tile kernel. See pack.h for the layouts, matmul_tile-inl.h for the
// requirements on a format.
#pragma once

#include "backend/cpu/avx512/matmul_tile-inl.h"

namespace minfer::cpu::avx512 {
namespace {

struct NoUnit {};

// Sixteen table entries plus 128, as unsigned bytes: the tables of iq4_nl / iq4_xs.
alignas(16) static const uint8_t kIq4Biased[16] = {128 - 127, 128 - 104, 128 - 83, 128 - 65, 128 - 49, 128 - 35,
                                                   128 - 22,  128 - 10,  128 + 1,  128 + 13, 128 + 25, 128 + 38,
                                                   128 + 53,  128 + 69,  128 + 89, 128 + 113};
// mxfp4 (twice the value) plus 16.
alignas(16) static const uint8_t kMxfp4Biased[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};

MINFER_INLINE void expand_table(const uint8_t* p, const uint8_t* table, __m512i* q) {
  const __m512i lut = _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(table)));
  expand_nibbles(p, q);
#pragma GCC unroll 8
  for (int g = 0; g < 8; ++g) q[g] = _mm512_shuffle_epi8(lut, q[g]);
}

struct Q8_0 {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBias = 128, kBlocks = 1, kUnitBytes = 16 * 34;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*) { return {}; }
  MINFER_INLINE void block(const uint8_t* w, Unit, int, Block& o) {
    o.a = load_f16x16(w);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) o.q[g] = load_zmm(w + 32 + 64 * g);
  }
};

struct Q4_0 {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBias = 8, kBlocks = 1, kUnitBytes = 16 * 18;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*) { return {}; }
  MINFER_INLINE void block(const uint8_t* w, Unit, int, Block& o) {
    o.a = load_f16x16(w);
    expand_nibbles(w + 32, o.q);
  }
};

struct Q4_1 {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBias = 0, kBlocks = 1, kUnitBytes = 16 * 20;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*) { return {}; }
  MINFER_INLINE void block(const uint8_t* w, Unit, int, Block& o) {
    o.a = load_f16x16(w);
    o.b = load_f16x16(w + 32);
    expand_nibbles(w + 64, o.q);
  }
};

struct Q5_0 {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBias = 16, kBlocks = 1, kUnitBytes = 16 * 22;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*) { return {}; }
  MINFER_INLINE void block(const uint8_t* w, Unit, int, Block& o) {
    o.a = load_f16x16(w);
    expand_nibbles(w + 32, o.q);
    add_bit4(w + 288, o.q);
  }
};

struct Q5_1 {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBias = 0, kBlocks = 1, kUnitBytes = 16 * 24;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*) { return {}; }
  MINFER_INLINE void block(const uint8_t* w, Unit, int, Block& o) {
    o.a = load_f16x16(w);
    o.b = load_f16x16(w + 32);
    expand_nibbles(w + 64, o.q);
    add_bit4(w + 320, o.q);
  }
};

struct IQ4_NL {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBias = 128, kBlocks = 1, kUnitBytes = 16 * 18;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*) { return {}; }
  MINFER_INLINE void block(const uint8_t* w, Unit, int, Block& o) {
    o.a = load_f16x16(w);
    expand_table(w + 32, kIq4Biased, o.q);
  }
};

struct MXFP4 {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBias = 16, kBlocks = 1, kUnitBytes = 16 * 17;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*) { return {}; }
  MINFER_INLINE void block(const uint8_t* w, Unit, int, Block& o) {
    // 2^(e - 128): exponent field e - 1 from e = 2 on; e = 0 and 1 are the denormals 2^-128 and 2^-127.
    const __m512i e = load_u8x16(w);
    const __mmask16 tiny = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const __m512i bits = _mm512_mask_sllv_epi32(normal, tiny, _mm512_set1_epi32(0x00200000), e);
    o.a = _mm512_castsi512_ps(bits);
    expand_table(w + 16, kMxfp4Biased, o.q);
  }
};

// Scales of q4_k and q5_k sub-block j: four low bits in bytes, two high bits in words.
struct K4Unit {
  __m512 d, dmin;
  __m512i high;
};
MINFER_INLINE K4Unit open_k4(const uint8_t* w) { return {load_f16x16(w), load_f16x16(w + 32), load_zmm(w + 192)}; }
MINFER_INLINE void scales_k4(const uint8_t* w, const K4Unit& u, int j, Block& o) {
  const __m512i low = load_u8x16(w + 64 + 16 * j);
  const __m512i high = _mm512_srlv_epi32(u.high, _mm512_set1_epi32(2 * j));
  const __m512i m15 = _mm512_set1_epi32(15), m48 = _mm512_set1_epi32(0x30);
  const __m512i sc = _mm512_ternarylogic_epi32(_mm512_and_si512(low, m15), _mm512_slli_epi32(high, 4), m48, 0xf8);
  const __m512i mn = _mm512_ternarylogic_epi32(_mm512_srli_epi32(low, 4), _mm512_srli_epi32(high, 12), m48, 0xf8);
  o.a = _mm512_mul_ps(u.d, _mm512_cvtepi32_ps(sc));
  const __m512 b = _mm512_mul_ps(u.dmin, _mm512_cvtepi32_ps(mn));
  o.b = _mm512_xor_ps(b, _mm512_set1_ps(-0.0f));  // fma(-b, s, acc)
}

struct Q4_K {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBias = 0, kBlocks = 8, kUnitBytes = 16 * 144;
  using Unit = K4Unit;
  MINFER_INLINE Unit open(const uint8_t* w) { return open_k4(w); }
  MINFER_INLINE void block(const uint8_t* w, const Unit& u, int j, Block& o) {
    scales_k4(w, u, j, o);
    expand_nibbles(w + 256 + 256 * j, o.q);
  }
};

struct Q5_K {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBias = 0, kBlocks = 8, kUnitBytes = 16 * 176;
  using Unit = K4Unit;
  MINFER_INLINE Unit open(const uint8_t* w) { return open_k4(w); }
  MINFER_INLINE void block(const uint8_t* w, const Unit& u, int j, Block& o) {
    scales_k4(w, u, j, o);
    expand_nibbles(w + 256 + 320 * j, o.q);
    add_bit4(w + 256 + 320 * j + 256, o.q);
  }
};

struct DUnit {
  __m512 d;
  __m512i high;
};

// (lo, hi) as an i16 pair per lane, lo and hi being i32 lanes that fit.
MINFER_INLINE __m512i pair16(__m512i lo, __m512i hi) {
  return _mm512_mask_blend_epi16(0xaaaaaaaau, lo, _mm512_slli_epi32(hi, 16));
}

struct Q6_K {
  static constexpr Step kStep = Step::kHalves;
  static constexpr int kBias = 32, kBlocks = 8, kUnitBytes = 16 * 210;
  using Unit = DUnit;
  MINFER_INLINE Unit open(const uint8_t* w) { return {load_f16x16(w), _mm512_setzero_si512()}; }
  MINFER_INLINE void block(const uint8_t* w, const Unit& u, int j, Block& o) {
    const uint8_t* p = w + 32 + 416 * j;
    o.a = u.d;
    o.sc0 = load_i8x16(p);
    o.sc1 = load_i8x16(p + 16);
    // -32 * scale is within -4064..4096
    const __m512i zero = _mm512_setzero_si512();
    o.pair = _mm512_sub_epi16(zero, _mm512_slli_epi16(pair16(o.sc0, o.sc1), 5));
    expand_nibbles(p + 32, o.q);
    const __m512i m = _mm512_set1_epi8(0x30);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {  // two bits to bits 4 and 5
      const __m512i v = load_zmm(p + 288 + 64 * (g / 4));
      const int s = 4 - 2 * (g % 4);
      const __m512i t = s >= 0 ? _mm512_slli_epi16(v, s) : _mm512_srli_epi16(v, -s);
      o.q[g] = _mm512_ternarylogic_epi32(o.q[g], t, m, 0xf8);
    }
  }
};

struct Q3_K {  // codes plus 4
  static constexpr Step kStep = Step::kHalves;
  static constexpr int kBias = 4, kBlocks = 8, kUnitBytes = 16 * 110;
  using Unit = DUnit;
  MINFER_INLINE Unit open(const uint8_t* w) { return {load_f16x16(w), load_zmm(w + 160)}; }
  MINFER_INLINE void scales(const uint8_t* w, const Unit& u, int j, Block& o) {
    const __m512i low = load_u8x16(w + 32 + 16 * j);
    const __m512i high = _mm512_srlv_epi32(u.high, _mm512_set1_epi32(4 * j));
    const __m512i m15 = _mm512_set1_epi32(15), m48 = _mm512_set1_epi32(0x30), off = _mm512_set1_epi32(32);
    const __m512i a = _mm512_ternarylogic_epi32(_mm512_and_si512(low, m15), _mm512_slli_epi32(high, 4), m48, 0xf8);
    const __m512i b = _mm512_ternarylogic_epi32(_mm512_srli_epi32(low, 4), _mm512_slli_epi32(high, 2), m48, 0xf8);
    o.a = u.d;
    o.sc0 = _mm512_sub_epi32(a, off);
    o.sc1 = _mm512_sub_epi32(b, off);
  }
  MINFER_INLINE void codes(const uint8_t* w, int j, __m512i* q) {
    const uint8_t* p = w + 224 + 192 * j;
    expand_pairs(p, q);
    const __m512i bits = load_zmm(p + 128), m = _mm512_set1_epi8(4);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {  // bit g to bit 2: q - (bit ? 0 : 4) = (q | bit << 2) - 4
      const __m512i v = g < 2 ? _mm512_slli_epi16(bits, 2 - g) : _mm512_srli_epi16(bits, g - 2);
      q[g] = _mm512_ternarylogic_epi32(q[g], v, m, 0xf8);
    }
  }
  MINFER_INLINE void block(const uint8_t* w, const Unit& u, int j, Block& o) {
    scales(w, u, j, o);
    const __m512i zero = _mm512_setzero_si512();
    o.pair = _mm512_sub_epi16(zero, _mm512_slli_epi16(pair16(o.sc0, o.sc1), 2));
    codes(w, j, o.q);
  }
};

struct Q2_K {
  static constexpr Step kStep = Step::kHalvesMin;
  static constexpr int kBias = 0, kBlocks = 8, kUnitBytes = 16 * 84;
  struct Unit {
    __m512 d, dmin;
  };
  MINFER_INLINE Unit open(const uint8_t* w) { return {load_f16x16(w), load_f16x16(w + 32)}; }
  MINFER_INLINE void block(const uint8_t* w, const Unit& u, int j, Block& o) {
    const uint8_t* p = w + 64 + 160 * j;
    const __m512i v0 = load_u8x16(p), v1 = load_u8x16(p + 16), m15 = _mm512_set1_epi32(15);
    o.a = u.d;
    o.b = u.dmin;
    o.sc0 = _mm512_and_si512(v0, m15);
    o.sc1 = _mm512_and_si512(v1, m15);
    o.pair = pair16(_mm512_srli_epi32(v0, 4), _mm512_srli_epi32(v1, 4));
    expand_pairs(p + 32, o.q);
  }
};

struct IQ4_XS {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBias = 128, kBlocks = 8, kUnitBytes = 16 * 136;
  struct Unit {
    __m512 d;
    __m512i low, high;
  };
  MINFER_INLINE Unit open(const uint8_t* w) {
    return {load_f16x16(w), load_zmm(w + 32),
            _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + 96)))};
  }
  MINFER_INLINE void block(const uint8_t* w, const Unit& u, int j, Block& o) {
    const __m512i low = _mm512_and_si512(_mm512_srlv_epi32(u.low, _mm512_set1_epi32(4 * j)), _mm512_set1_epi32(15));
    const __m512i high = _mm512_slli_epi32(_mm512_srlv_epi32(u.high, _mm512_set1_epi32(2 * j)), 4);
    const __m512i ls = _mm512_ternarylogic_epi32(low, high, _mm512_set1_epi32(0x30), 0xf8);
    o.a = _mm512_mul_ps(u.d, _mm512_cvtepi32_ps(_mm512_sub_epi32(ls, _mm512_set1_epi32(32))));
    expand_table(w + 128 + 256 * j, kIq4Biased, o.q);
  }
};

}  // namespace
}  // namespace minfer::cpu::avx512
