// The unpacked forms: one segment of a row group expanded to signed bytes and wide scales, used for all token tiles.
// One record per block of 32 values: the scales its step uses, four bytes for each of 16 rows, then the codes i8 [4
// quarters][8 groups][4 rows][4]. Where the product of a code and its half block's integer scale fits a byte (q2_k,
// q3_k), it is taken here, so that the tile kernel needs one dot product of 32 instead of two of 16.
#include "backend/cpu/neon/matmul_formats-inl.h"
#include "backend/cpu/neon/matmul_tables-inl.h"

namespace minfer::cpu::neon {
namespace {

template <int at>  // offset of the codes
struct Record {
  static constexpr int kBias = 0, kBlocks = 1, kUnitBytes = at + 512;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*, int) { return {}; }
  template <int G>
  MINFER_INLINE int8x16_t code(const uint8_t* w, int, int q) {
    return load_i8x16(w + at + 128 * q + 16 * G);
  }
  MINFER_INLINE void put_codes(uint8_t* w, int q, const int8x16_t* code) {
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) vst1q_u8(w + at + 128 * q + 16 * g, vreinterpretq_u8_s8(code[g]));
  }
};

MINFER_INLINE void put(uint8_t* w, float32x4_t v) { vst1q_u8(w, vreinterpretq_u8_f32(v)); }
MINFER_INLINE void put(uint8_t* w, int32x4_t v) { vst1q_u8(w, vreinterpretq_u8_s32(v)); }

struct UnpackedScale : Record<64> {
  static constexpr Step kStep = Step::kScale;
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int q, Scales& s) { s.a = load_f32x4(w + 16 * q); }
  MINFER_INLINE void put_block(uint8_t* w, int q, const Scales& s, int8x16_t* code) {
    put(w + 16 * q, s.a);
    put_codes(w, q, code);
  }
};

struct UnpackedScaleMin : Record<128> {
  static constexpr Step kStep = Step::kScaleMin;
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int q, Scales& s) {
    s.a = load_f32x4(w + 16 * q);
    s.b = load_f32x4(w + 64 + 16 * q);
  }
  MINFER_INLINE void put_block(uint8_t* w, int q, const Scales& s, int8x16_t* code) {
    put(w + 16 * q, s.a);
    put(w + 64 + 16 * q, s.b);
    put_codes(w, q, code);
  }
};

struct UnpackedHalves : Record<192> {  // q6_k
  static constexpr Step kStep = Step::kHalves;
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int q, Scales& s) {
    s.a = load_f32x4(w + 16 * q);
    s.sc0 = load_i32x4(w + 64 + 16 * q);
    s.sc1 = load_i32x4(w + 128 + 16 * q);
  }
  MINFER_INLINE void put_block(uint8_t* w, int q, const Scales& s, int8x16_t* code) {
    put(w + 16 * q, s.a);
    put(w + 64 + 16 * q, s.sc0);
    put(w + 128 + 16 * q, s.sc1);
    put_codes(w, q, code);
  }
};

// Four codes per lane times the lane's scale, where the products fit a byte.
MINFER_INLINE void scale_codes(int8x16_t* code, int32x4_t scale) {
  const int32x4_t low = vandq_s32(scale, vdupq_n_s32(255));
  const int8x16_t s = vreinterpretq_s8_s32(vmulq_n_s32(low, 0x01010101));
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) code[g] = vmulq_s8(code[g], s);
}

struct UnpackedQ3_K : UnpackedScale {
  MINFER_INLINE void put_block(uint8_t* w, int q, const Scales& s, int8x16_t* code) {
    // -4..3 times -32..31 is -124..128, one too many: the negated products -128..124 fit, with the scale negated as
    // well. A product's sign does not touch its rounding, and the accumulator, which starts at +0, is never -0.
    scale_codes(code, vnegq_s32(s.sc0));
    scale_codes(code + 4, vnegq_s32(s.sc1));
    put(w + 16 * q, vnegq_f32(s.a));
    put_codes(w, q, code);
  }
};

struct UnpackedQ2_K : Record<256> {
  static constexpr Step kStep = Step::kDotMin;
  MINFER_INLINE void scales(const uint8_t* w, Unit, int, int q, Scales& s) {
    s.a = load_f32x4(w + 16 * q);
    s.b = load_f32x4(w + 64 + 16 * q);
    s.mn0 = load_i32x4(w + 128 + 16 * q);
    s.mn1 = load_i32x4(w + 192 + 16 * q);
  }
  MINFER_INLINE void put_block(uint8_t* w, int q, const Scales& s, int8x16_t* code) {
    scale_codes(code, s.sc0);  // 3 * 15 = 45 at most
    scale_codes(code + 4, s.sc1);
    put(w + 16 * q, s.a);
    put(w + 64 + 16 * q, s.b);
    put(w + 128 + 16 * q, s.mn0);
    put(w + 192 + 16 * q, s.mn1);
    put_codes(w, q, code);
  }
};

template <class F, class U>
void unpack(const uint8_t* w, int64_t k, uint8_t* dst) {
  const int8x16_t bias = vdupq_n_s8(F::kBias);
  const int64_t n_units = k / (kActBlock * F::kBlocks);
  for (int64_t u = 0; u < n_units; ++u, w += F::kUnitBytes, dst += F::kBlocks * U::kUnitBytes) {
    for (int q = 0; q < kQuarters; ++q) {
      const typename F::Unit unit = F::open(w, q);
      for (int j = 0; j < F::kBlocks; ++j) {
        Scales s;
        F::scales(w, unit, j, q, s);
        int8x16_t code[8] = {F::template code<0>(w, j, q), F::template code<1>(w, j, q), F::template code<2>(w, j, q),
                             F::template code<3>(w, j, q), F::template code<4>(w, j, q), F::template code<5>(w, j, q),
                             F::template code<6>(w, j, q), F::template code<7>(w, j, q)};
        if constexpr (F::kBias != 0) {
#pragma GCC unroll 8
          for (int g = 0; g < 8; ++g) code[g] = vsubq_s8(code[g], bias);
        }
        U::put_block(dst + j * U::kUnitBytes, q, s, code);
      }
    }
  }
}

template <class F, class U>
void unpacked(FormatKernels& k) {
  k.unpack = unpack<F, U>;
  k.unpacked_bytes = U::kUnitBytes;
  k.unpack_from = 17;  // three tiles of eight
}

// The tile kernels depend on the unpacked form only: formats share them.
template <class U, PackedFormat... formats>
void unpacked_tiles(FormatKernels* f) {
  const PackedFormat list[] = {formats...};
  for (const PackedFormat p : list) tiles<U>(f[p].tile_unpacked);
}

}  // namespace

void fill_unpacked_formats(FormatKernels* f) {
  unpacked<Q8_0, UnpackedScale>(f[kFmtQ8_0]);
  unpacked<Q4_0, UnpackedScale>(f[kFmtQ4_0]);
  unpacked<Q5_0, UnpackedScale>(f[kFmtQ5_0]);
  unpacked<MXFP4, UnpackedScale>(f[kFmtMXFP4]);
  unpacked<IQ4_NL, UnpackedScale>(f[kFmtIQ4_NL]);
  unpacked<IQ4_XS, UnpackedScale>(f[kFmtIQ4_XS]);
  unpacked<Q3_K, UnpackedQ3_K>(f[kFmtQ3_K]);
  unpacked<Q4_1, UnpackedScaleMin>(f[kFmtQ4_1]);
  unpacked<Q5_1, UnpackedScaleMin>(f[kFmtQ5_1]);
  unpacked<Q4_K, UnpackedScaleMin>(f[kFmtQ4_K]);
  unpacked<Q5_K, UnpackedScaleMin>(f[kFmtQ5_K]);
  unpacked<Q6_K, UnpackedHalves>(f[kFmtQ6_K]);
  unpacked<Q2_K, UnpackedQ2_K>(f[kFmtQ2_K]);

  unpacked_tiles<UnpackedScale, kFmtQ8_0, kFmtQ4_0, kFmtQ5_0, kFmtMXFP4, kFmtIQ4_NL, kFmtIQ4_XS, kFmtQ3_K>(f);
  unpacked_tiles<UnpackedScaleMin, kFmtQ4_1, kFmtQ5_1, kFmtQ4_K, kFmtQ5_K>(f);
  unpacked_tiles<UnpackedHalves, kFmtQ6_K>(f);
  unpacked_tiles<UnpackedQ2_K, kFmtQ2_K>(f);
}

}  // namespace minfer::cpu::neon
