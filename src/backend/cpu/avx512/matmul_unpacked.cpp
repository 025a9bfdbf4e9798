// Unpacked forms: one segment of a row group expanded to bytes and f32 scales, used for all token tiles. Only where
// that was measured to pay: formats of four bits, q6_k and q8_0 are as fast straight from their packed form, which is
// smaller in the L1 cache. Where the product of a code and its sub-block's integer scale fits a byte (q2_k, q3_k), it
// is taken here, so that the tile kernel needs one dot product of 32 instead of two of 16.
#include "backend/cpu/avx512/matmul_formats-inl.h"
#include "backend/cpu/avx512/matmul_tables-inl.h"

namespace minfer::cpu::avx512 {
namespace {

MINFER_INLINE void load_codes(const uint8_t* w, Block& o) {
#pragma GCC unroll 8
  for (int g = 0; g < 8; ++g) o.q[g] = load_zmm(w + 64 * g);
}
MINFER_INLINE void store_codes(uint8_t* w, const Block& b) {
#pragma GCC unroll 8
  for (int g = 0; g < 8; ++g) _mm512_storeu_si512(w + 64 * g, b.q[g]);
}

template <int bias>
struct UnpackedScale {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBias = bias, kBlocks = 1, kUnitBytes = 576;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*) { return {}; }
  MINFER_INLINE void block(const uint8_t* w, Unit, int, Block& o) {
    o.a = _mm512_loadu_ps(w);
    load_codes(w + 64, o);
  }
  MINFER_INLINE void put(uint8_t* w, const Block& b) {
    _mm512_storeu_ps(w, b.a);
    store_codes(w + 64, b);
  }
};

struct UnpackedScaleMin {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBias = 0, kBlocks = 1, kUnitBytes = 640;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*) { return {}; }
  MINFER_INLINE void block(const uint8_t* w, Unit, int, Block& o) {
    o.a = _mm512_loadu_ps(w);
    o.b = _mm512_loadu_ps(w + 64);
    load_codes(w + 128, o);
  }
  MINFER_INLINE void put(uint8_t* w, const Block& b) {
    _mm512_storeu_ps(w, b.a);
    _mm512_storeu_ps(w + 64, b.b);
    store_codes(w + 128, b);
  }
};

// codes * scale + add per byte, for products that end in 0..255; `scale` holds i32 lanes of at most 16 bits.
MINFER_INLINE void scale_codes(__m512i* q, __m512i scale, int sub, int add) {
  const __m512i s = pair16(scale, scale), low = _mm512_set1_epi16(255);
  const __m512i vsub = _mm512_set1_epi16(static_cast<int16_t>(sub)),
                vadd = _mm512_set1_epi16(static_cast<int16_t>(add));
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {
    const __m512i even = _mm512_sub_epi16(_mm512_and_si512(q[g], low), vsub);
    const __m512i odd = _mm512_sub_epi16(_mm512_srli_epi16(q[g], 8), vsub);
    const __m512i e = _mm512_add_epi16(_mm512_mullo_epi16(even, s), vadd);
    const __m512i o = _mm512_add_epi16(_mm512_mullo_epi16(odd, s), vadd);
    q[g] = _mm512_or_si512(e, _mm512_slli_epi16(o, 8));
  }
}

struct UnpackedQ3_K : UnpackedScale<127> {
  MINFER_INLINE void put(uint8_t* w, Block& b) {
    // q - 4 in -4..3 times -32..31 lies in -124..128, plus 127: 3..255
    scale_codes(b.q, b.sc0, 4, 127);
    scale_codes(b.q + 4, b.sc1, 4, 127);
    UnpackedScale<127>::put(w, b);
  }
};

struct UnpackedQ2_K {
  static constexpr Step kStep = Step::kDotMin;
  static constexpr int kBias = 0, kBlocks = 1, kUnitBytes = 704;
  using Unit = NoUnit;
  MINFER_INLINE Unit open(const uint8_t*) { return {}; }
  MINFER_INLINE void block(const uint8_t* w, Unit, int, Block& o) {
    o.a = _mm512_loadu_ps(w);
    o.b = _mm512_loadu_ps(w + 64);
    o.pair = load_zmm(w + 128);
    load_codes(w + 192, o);
  }
  MINFER_INLINE void put(uint8_t* w, Block& b) {
    scale_codes(b.q, b.sc0, 0, 0);  // 3 * 15 = 45 at most
    scale_codes(b.q + 4, b.sc1, 0, 0);
    _mm512_storeu_ps(w, b.a);
    _mm512_storeu_ps(w + 64, b.b);
    _mm512_storeu_si512(w + 128, b.pair);
    store_codes(w + 192, b);
  }
};

template <class F, class U>
void unpack(const uint8_t* w, int64_t k, uint8_t* dst) {
  const int64_t n_units = k / (kActBlock * F::kBlocks);
  for (int64_t u = 0; u < n_units; ++u, w += F::kUnitBytes) {
    const typename F::Unit unit = F::open(w);
    for (int j = 0; j < F::kBlocks; ++j, dst += U::kUnitBytes) {
      Block b;
      F::block(w, unit, j, b);
      U::put(dst, b);
    }
  }
}

template <class F, class U>
void unpacked(FormatKernels& k) {
  k.unpack = unpack<F, U>;
  k.unpacked_bytes = U::kUnitBytes;
  k.unpack_from = kDirectMax + 1;
}

// The tile kernels depend on the unpacked form only: formats share them.
template <class U, PackedFormat... formats>
void unpacked_tiles(FormatKernels* f) {
  const PackedFormat list[] = {formats...};
  for (const PackedFormat p : list) {
    TileFn* t = f[p].tile_unpacked;
    t[1] = tile<U, 1>;
    t[2] = tile<U, 2>;
    t[3] = tile<U, 3>;
    t[4] = tile<U, 4>;
    t[6] = tile<U, 6>;
    t[8] = tile<U, 8>;
    t[12] = tile<U, 12>;
    t[16] = tile<U, 16>;
  }
}

}  // namespace

void fill_unpacked_formats(FormatKernels* f) {
  unpacked<Q5_0, UnpackedScale<16>>(f[kFmtQ5_0]);
  unpacked<MXFP4, UnpackedScale<16>>(f[kFmtMXFP4]);
  unpacked<IQ4_XS, UnpackedScale<128>>(f[kFmtIQ4_XS]);
  unpacked<Q3_K, UnpackedQ3_K>(f[kFmtQ3_K]);
  unpacked<Q5_1, UnpackedScaleMin>(f[kFmtQ5_1]);
  unpacked<Q5_K, UnpackedScaleMin>(f[kFmtQ5_K]);
  unpacked<Q2_K, UnpackedQ2_K>(f[kFmtQ2_K]);

  unpacked_tiles<UnpackedScale<16>, kFmtQ5_0, kFmtMXFP4>(f);
  unpacked_tiles<UnpackedScale<127>, kFmtQ3_K>(f);
  unpacked_tiles<UnpackedScale<128>, kFmtIQ4_XS>(f);
  unpacked_tiles<UnpackedScaleMin, kFmtQ5_1, kFmtQ5_K>(f);
  unpacked_tiles<UnpackedQ2_K, kFmtQ2_K>(f);
}

}  // namespace minfer::cpu::avx512
