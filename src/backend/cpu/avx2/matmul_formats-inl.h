// How each packed block format is opened for the tile kernels of this folder and of avxvnni/. Layouts: pack.h.
#pragma once

#include "backend/cpu/avx2/matmul_codes-inl.h"

namespace minfer::cpu::ymm {
namespace {

struct NoUnit {};

// iq4_nl and iq4_xs plus 128: 1..241.
alignas(16) static const uint8_t kIq4Biased[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                                   129, 141, 153, 166, 181, 197, 217, 241};
// The low and the high nibbles of these.
alignas(16) static const uint8_t kIq4Low[16] = {1, 8, 13, 15, 15, 13, 10, 6, 1, 13, 9, 6, 5, 5, 9, 1};
alignas(16) static const uint8_t kIq4High[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12, 13, 15};
// mxfp4 (twice the value) plus 16: 4..28.
alignas(16) static const uint8_t kMxfp4Biased[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};

MINFER_INLINE __m256i look_up(const uint8_t* table, __m256i nibbles) {
  const __m128i lut = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(lut), nibbles);
}

// For vpmaddubsw: the nibbles of an iq4 code plus 128.
MINFER_INLINE void iq4_planes(__m256i nibbles, __m256i* q) {
  q[0] = look_up(kIq4Low, nibbles);
  q[1] = look_up(kIq4High, nibbles);
}

struct Q8_0 {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBits = 8, kBias = 128, kBlocks = 1, kUnitBytes = 16 * 34;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int h, Scales& s) { s.a = load_f16x8(w + 16 * h); }
  MINFER_INLINE __m256i code(const uint8_t* w, int, int g, int h) { return load_ymm(w + 32 + 64 * g + 32 * h); }
};

struct Q4_0 {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBits = 4, kBias = 8, kBlocks = 1, kUnitBytes = 16 * 18;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int h, Scales& s) { s.a = load_f16x8(w + 16 * h); }
  MINFER_INLINE __m256i code(const uint8_t* w, int, int g, int h) { return nibble_code(w + 32, g, h); }
};

struct Q4_1 {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBits = 4, kBias = 0, kBlocks = 1, kUnitBytes = 16 * 20;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int h, Scales& s) {
    s.a = load_f16x8(w + 16 * h);
    s.b = load_f16x8(w + 32 + 16 * h);
  }
  MINFER_INLINE __m256i code(const uint8_t* w, int, int g, int h) { return nibble_code(w + 64, g, h); }
};

struct Q5_0 {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBits = 5, kBias = 16, kBlocks = 1, kUnitBytes = 16 * 22;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int h, Scales& s) { s.a = load_f16x8(w + 16 * h); }
  MINFER_INLINE __m256i code(const uint8_t* w, int, int g, int h) {
    return _mm256_or_si256(nibble_code(w + 32, g, h), bit_code(w + 288, g, h, 4));
  }
};

struct Q5_1 {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBits = 5, kBias = 0, kBlocks = 1, kUnitBytes = 16 * 24;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int h, Scales& s) {
    s.a = load_f16x8(w + 16 * h);
    s.b = load_f16x8(w + 32 + 16 * h);
  }
  MINFER_INLINE __m256i code(const uint8_t* w, int, int g, int h) {
    return _mm256_or_si256(nibble_code(w + 64, g, h), bit_code(w + 320, g, h, 4));
  }
};

struct IQ4_NL {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBits = 8, kBias = 128, kBlocks = 1, kUnitBytes = 16 * 18;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int h, Scales& s) { s.a = load_f16x8(w + 16 * h); }
  MINFER_INLINE __m256i code(const uint8_t* w, int, int g, int h) {
    return look_up(kIq4Biased, nibble_code(w + 32, g, h));
  }
  MINFER_INLINE void planes(const uint8_t* w, int, int g, int h, __m256i* q) {
    iq4_planes(nibble_code(w + 32, g, h), q);
  }
};

struct MXFP4 {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBits = 5, kBias = 16, kBlocks = 1, kUnitBytes = 16 * 17;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int h, Scales& s) {
    // 2^(e - 128): exponent field e - 1 from e = 2 on; e = 0 and 1 are the denormals 2^-128 and 2^-127.
    const __m256i e = load_u8x8(w + 8 * h);
    const __m256i tiny = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e);
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const __m256i denormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    s.a = _mm256_castsi256_ps(_mm256_blendv_epi8(normal, denormal, tiny));
  }
  MINFER_INLINE __m256i code(const uint8_t* w, int, int g, int h) {
    return look_up(kMxfp4Biased, nibble_code(w + 16, g, h));
  }
};

struct K4Unit {
  __m256 d, dmin;
  __m256i high;
};
MINFER_INLINE K4Unit open_k4(const uint8_t* w, int h) {
  return {load_f16x8(w + 16 * h), load_f16x8(w + 32 + 16 * h), load_ymm(w + 192 + 32 * h)};
}
MINFER_INLINE void scales_k4(const uint8_t* w, const K4Unit& u, int j, int h, Scales& s) {
  const __m256i low = load_u8x8(w + 64 + 16 * j + 8 * h);
  const __m256i high = _mm256_srlv_epi32(u.high, _mm256_set1_epi32(2 * j));
  const __m256i m15 = _mm256_set1_epi32(15), m48 = _mm256_set1_epi32(0x30);
  const __m256i sc = _mm256_or_si256(_mm256_and_si256(low, m15), _mm256_and_si256(_mm256_slli_epi32(high, 4), m48));
  const __m256i mn = _mm256_or_si256(_mm256_srli_epi32(low, 4), _mm256_and_si256(_mm256_srli_epi32(high, 12), m48));
  s.a = _mm256_mul_ps(u.d, _mm256_cvtepi32_ps(sc));
  const __m256 b = _mm256_mul_ps(u.dmin, _mm256_cvtepi32_ps(mn));
  s.b = _mm256_xor_ps(b, _mm256_set1_ps(-0.0f));  // fma(-b, s, acc)
}

struct Q4_K {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBits = 4, kBias = 0, kBlocks = 8, kUnitBytes = 16 * 144;
  using Unit = K4Unit;
  MINFER_INLINE Unit open(const uint8_t* w, int h) { return open_k4(w, h); }
  MINFER_INLINE void scales(const uint8_t* w, const Unit& u, int j, int h, Scales& s) { scales_k4(w, u, j, h, s); }
  MINFER_INLINE __m256i code(const uint8_t* w, int j, int g, int h) { return nibble_code(w + 256 + 256 * j, g, h); }
};

struct Q5_K {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBits = 5, kBias = 0, kBlocks = 8, kUnitBytes = 16 * 176;
  using Unit = K4Unit;
  MINFER_INLINE Unit open(const uint8_t* w, int h) { return open_k4(w, h); }
  MINFER_INLINE void scales(const uint8_t* w, const Unit& u, int j, int h, Scales& s) { scales_k4(w, u, j, h, s); }
  MINFER_INLINE __m256i code(const uint8_t* w, int j, int g, int h) {
    const uint8_t* p = w + 256 + 320 * j;
    return _mm256_or_si256(nibble_code(p, g, h), bit_code(p + 256, g, h, 4));
  }
};

struct Q6_K {
  static constexpr Step kStep = Step::kHalves;
  static constexpr int kBits = 6, kBias = 32, kBlocks = 8, kUnitBytes = 16 * 210;
  using Unit = __m256;
  MINFER_INLINE Unit open(const uint8_t* w, int h) { return load_f16x8(w + 16 * h); }
  MINFER_INLINE void scales(const uint8_t* w, Unit d, int j, int h, Scales& s) {
    const uint8_t* p = w + 32 + 416 * j + 8 * h;
    const __m256i sc0 = load_i8x8(p), sc1 = load_i8x8(p + 16);
    s.a = d;
    s.sc0 = sc0;
    s.sc1 = sc1;
    s.pair = _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_slli_epi16(pair16(sc0, sc1), 5));
  }
  MINFER_INLINE __m256i code(const uint8_t* w, int j, int g, int h) {
    const uint8_t* p = w + 64 + 416 * j;
    return _mm256_or_si256(nibble_code(p, g, h), pair_code(p + 256, g, h, 4));
  }
};

struct Q3_K {  // codes plus 4: q - (bit ? 0 : 4) = (q | bit << 2) - 4
  static constexpr Step kStep = Step::kHalves;
  static constexpr int kBits = 3, kBias = 4, kBlocks = 8, kUnitBytes = 16 * 110;
  struct Unit {
    __m256 d;
    __m256i high;
  };
  MINFER_INLINE Unit open(const uint8_t* w, int h) { return {load_f16x8(w + 16 * h), load_ymm(w + 160 + 32 * h)}; }
  MINFER_INLINE void scales(const uint8_t* w, const Unit& u, int j, int h, Scales& s) {
    const __m256i low = load_u8x8(w + 32 + 16 * j + 8 * h);
    const __m256i high = _mm256_srlv_epi32(u.high, _mm256_set1_epi32(4 * j));
    const __m256i m15 = _mm256_set1_epi32(15), m48 = _mm256_set1_epi32(0x30), off = _mm256_set1_epi32(32);
    const __m256i a = _mm256_or_si256(_mm256_and_si256(low, m15), _mm256_and_si256(_mm256_slli_epi32(high, 4), m48));
    const __m256i b = _mm256_or_si256(_mm256_srli_epi32(low, 4), _mm256_and_si256(_mm256_slli_epi32(high, 2), m48));
    const __m256i sc0 = _mm256_sub_epi32(a, off), sc1 = _mm256_sub_epi32(b, off);
    s.a = u.d;
    s.sc0 = sc0;
    s.sc1 = sc1;
    s.pair = _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_slli_epi16(pair16(sc0, sc1), 2));
  }
  MINFER_INLINE __m256i code(const uint8_t* w, int j, int g, int h) {
    const uint8_t* p = w + 224 + 192 * j;
    return _mm256_or_si256(pair_code(p, g, h, 0), bit_code(p + 128, g, h, 2));
  }
};

struct Q2_K {
  static constexpr Step kStep = Step::kHalvesMin;
  static constexpr int kBits = 2, kBias = 0, kBlocks = 8, kUnitBytes = 16 * 84;
  struct Unit {
    __m256 d, dmin;
  };
  MINFER_INLINE Unit open(const uint8_t* w, int h) { return {load_f16x8(w + 16 * h), load_f16x8(w + 32 + 16 * h)}; }
  MINFER_INLINE void scales(const uint8_t* w, const Unit& u, int j, int h, Scales& s) {
    const uint8_t* p = w + 64 + 160 * j + 8 * h;
    const __m256i v0 = load_u8x8(p), v1 = load_u8x8(p + 16), m15 = _mm256_set1_epi32(15);
    s.a = u.d;
    s.b = u.dmin;
    s.sc0 = _mm256_and_si256(v0, m15);
    s.sc1 = _mm256_and_si256(v1, m15);
    s.pair = pair16(_mm256_srli_epi32(v0, 4), _mm256_srli_epi32(v1, 4));
  }
  MINFER_INLINE __m256i code(const uint8_t* w, int j, int g, int h) { return pair_code(w + 96 + 160 * j, g, h, 0); }
};

struct IQ4_XS {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBits = 8, kBias = 128, kBlocks = 8, kUnitBytes = 16 * 136;
  struct Unit {
    __m256 d;
    __m256i low, high;
  };
  MINFER_INLINE Unit open(const uint8_t* w, int h) {
    return {load_f16x8(w + 16 * h), load_ymm(w + 32 + 32 * h),
            _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w + 96 + 16 * h)))};
  }
  MINFER_INLINE void scales(const uint8_t*, const Unit& u, int j, int, Scales& s) {
    const __m256i low = _mm256_and_si256(_mm256_srlv_epi32(u.low, _mm256_set1_epi32(4 * j)), _mm256_set1_epi32(15));
    const __m256i high = _mm256_slli_epi32(_mm256_srlv_epi32(u.high, _mm256_set1_epi32(2 * j)), 4);
    const __m256i ls = _mm256_or_si256(low, _mm256_and_si256(high, _mm256_set1_epi32(0x30)));
    s.a = _mm256_mul_ps(u.d, _mm256_cvtepi32_ps(_mm256_sub_epi32(ls, _mm256_set1_epi32(32))));
  }
  MINFER_INLINE __m256i code(const uint8_t* w, int j, int g, int h) {
    return look_up(kIq4Biased, nibble_code(w + 128 + 256 * j, g, h));
  }
  MINFER_INLINE void planes(const uint8_t* w, int j, int g, int h, __m256i* q) {
    iq4_planes(nibble_code(w + 128 + 256 * j, g, h), q);
  }
};

}  // namespace
}  // namespace minfer::cpu::ymm
