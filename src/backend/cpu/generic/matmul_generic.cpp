// Matmul kernels in plain C++ for any processor: each packed block is opened to 16-bit codes and dotted row by row.
// Source: docs/numerics.md; layouts in pack.h and matmul_kernels.h.
#include <cstring>

#include "backend/cpu/matmul_kernels.h"

namespace minfer::cpu {
namespace {

enum class Step { kScale, kScaleMin, kHalves, kHalvesMin };

struct Block {
  int16_t q[kRowGroup][kActBlock];         // signed codes
  float a[kRowGroup], b[kRowGroup];        // scale; minimum (negated for K-quants) or dmin
  int32_t sc0[kRowGroup], sc1[kRowGroup];  // scales of the halves
  int32_t mn0[kRowGroup], mn1[kRowGroup];  // minimums of the halves
};

template <typename T>
T load(const uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

float f16(const uint8_t* p) {
  const uint32_t h = load<uint16_t>(p), sign = (h & 0x8000u) << 16, exp = (h >> 10) & 31u, man = h & 0x3ffu;
  uint32_t bits;
  if (exp == 31) {
    bits = sign | 0x7f800000u | (man << 13) | (man != 0 ? 0x400000u : 0u);
  } else if (exp == 0) {
    const float mag = static_cast<float>(man) * 0x1p-24f;
    std::memcpy(&bits, &mag, 4);
    bits |= sign;
  } else {
    bits = sign | ((exp + 112) << 23) | (man << 13);
  }
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

// Values 4g .. 4g + 3 of a row within an array of u32[16] vectors: bytes of vector v, lane r.
uint8_t byte_at(const uint8_t* p, int v, int r, int c) { return p[(v * kRowGroup + r) * 4 + c]; }

void nibbles(const uint8_t* p, int16_t (*q)[kActBlock]) {
  for (int v = 0; v < 4; ++v) {
    for (int r = 0; r < kRowGroup; ++r) {
      for (int c = 0; c < 4; ++c) {
        const uint8_t b = byte_at(p, v, r, c);
        q[r][4 * v + c] = b & 15;
        q[r][16 + 4 * v + c] = b >> 4;
      }
    }
  }
}

// Adds `value` where the value's bit is set.
void add_bits(const uint8_t* p, int value, int16_t (*q)[kActBlock]) {
  for (int r = 0; r < kRowGroup; ++r) {
    for (int i = 0; i < kActBlock; ++i) {
      q[r][i] = static_cast<int16_t>(q[r][i] + ((byte_at(p, 0, r, i % 4) >> (i / 4)) & 1) * value);
    }
  }
}

void add_pairs(const uint8_t* p, int value, int16_t (*q)[kActBlock]) {
  for (int r = 0; r < kRowGroup; ++r) {
    for (int i = 0; i < kActBlock; ++i) {
      const int g = i / 4;
      q[r][i] = static_cast<int16_t>(q[r][i] + ((byte_at(p, g / 4, r, i % 4) >> (2 * (g % 4))) & 3) * value);
    }
  }
}

void subtract(int value, int16_t (*q)[kActBlock]) {
  for (int r = 0; r < kRowGroup; ++r) {
    for (int i = 0; i < kActBlock; ++i) q[r][i] = static_cast<int16_t>(q[r][i] - value);
  }
}

void look_up(const int8_t* table, int16_t (*q)[kActBlock]) {
  for (int r = 0; r < kRowGroup; ++r) {
    for (int i = 0; i < kActBlock; ++i) q[r][i] = table[q[r][i]];
  }
}

void load_f16(const uint8_t* p, float* out) {
  for (int r = 0; r < kRowGroup; ++r) out[r] = f16(p + 2 * r);
}

const int8_t kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
const int8_t kMxfp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// A format: step, 32-blocks per unit, bytes per unit, and block j of a unit.
struct Q8_0 {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBlocks = 1, kBytes = 16 * 34;
  static void block(const uint8_t* w, int, Block& o) {
    load_f16(w, o.a);
    for (int g = 0; g < 8; ++g) {
      for (int r = 0; r < kRowGroup; ++r) {
        for (int c = 0; c < 4; ++c) o.q[r][4 * g + c] = static_cast<int16_t>(byte_at(w + 32, g, r, c) - 128);
      }
    }
  }
};
struct Q4_0 {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBlocks = 1, kBytes = 16 * 18;
  static void block(const uint8_t* w, int, Block& o) {
    load_f16(w, o.a);
    nibbles(w + 32, o.q);
    subtract(8, o.q);
  }
};
struct Q4_1 {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBlocks = 1, kBytes = 16 * 20;
  static void block(const uint8_t* w, int, Block& o) {
    load_f16(w, o.a);
    load_f16(w + 32, o.b);
    nibbles(w + 64, o.q);
  }
};
struct Q5_0 {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBlocks = 1, kBytes = 16 * 22;
  static void block(const uint8_t* w, int, Block& o) {
    load_f16(w, o.a);
    nibbles(w + 32, o.q);
    add_bits(w + 288, 16, o.q);
    subtract(16, o.q);
  }
};
struct Q5_1 {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBlocks = 1, kBytes = 16 * 24;
  static void block(const uint8_t* w, int, Block& o) {
    load_f16(w, o.a);
    load_f16(w + 32, o.b);
    nibbles(w + 64, o.q);
    add_bits(w + 320, 16, o.q);
  }
};
struct IQ4_NL {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBlocks = 1, kBytes = 16 * 18;
  static void block(const uint8_t* w, int, Block& o) {
    load_f16(w, o.a);
    nibbles(w + 32, o.q);
    look_up(kIq4, o.q);
  }
};
struct MXFP4 {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBlocks = 1, kBytes = 16 * 17;
  static void block(const uint8_t* w, int, Block& o) {
    for (int r = 0; r < kRowGroup; ++r) {  // 2^(e - 128), the last two denormal
      const uint32_t e = w[r], bits = e < 2 ? 0x00200000u << e : (e - 1) << 23;
      std::memcpy(&o.a[r], &bits, 4);
    }
    nibbles(w + 16, o.q);
    look_up(kMxfp4, o.q);
  }
};

void scales_k4(const uint8_t* w, int j, Block& o) {
  for (int r = 0; r < kRowGroup; ++r) {
    const uint32_t low = w[64 + 16 * j + r], high = load<uint32_t>(w + 192 + 4 * r) >> (2 * j);
    const uint32_t sc = (low & 15u) | (high & 3u) << 4, mn = low >> 4 | ((high >> 16) & 3u) << 4;
    o.a[r] = f16(w + 2 * r) * static_cast<float>(sc);
    o.b[r] = -(f16(w + 32 + 2 * r) * static_cast<float>(mn));
  }
}
struct Q4_K {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBlocks = 8, kBytes = 16 * 144;
  static void block(const uint8_t* w, int j, Block& o) {
    scales_k4(w, j, o);
    nibbles(w + 256 + 256 * j, o.q);
  }
};
struct Q5_K {
  static constexpr Step kStep = Step::kScaleMin;
  static constexpr int kBlocks = 8, kBytes = 16 * 176;
  static void block(const uint8_t* w, int j, Block& o) {
    scales_k4(w, j, o);
    nibbles(w + 256 + 320 * j, o.q);
    add_bits(w + 512 + 320 * j, 16, o.q);
  }
};
struct Q6_K {
  static constexpr Step kStep = Step::kHalves;
  static constexpr int kBlocks = 8, kBytes = 16 * 210;
  static void block(const uint8_t* w, int j, Block& o) {
    const uint8_t* p = w + 32 + 416 * j;
    load_f16(w, o.a);
    for (int r = 0; r < kRowGroup; ++r) {
      o.sc0[r] = load<int8_t>(p + r);
      o.sc1[r] = load<int8_t>(p + 16 + r);
    }
    nibbles(p + 32, o.q);
    add_pairs(p + 288, 16, o.q);
    subtract(32, o.q);
  }
};
struct Q3_K {
  static constexpr Step kStep = Step::kHalves;
  static constexpr int kBlocks = 8, kBytes = 16 * 110;
  static void block(const uint8_t* w, int j, Block& o) {
    const uint8_t* p = w + 224 + 192 * j;
    load_f16(w, o.a);
    for (int r = 0; r < kRowGroup; ++r) {
      const uint32_t low = w[32 + 16 * j + r], high = load<uint32_t>(w + 160 + 4 * r) >> (4 * j);
      o.sc0[r] = static_cast<int32_t>((low & 15u) | (high & 3u) << 4) - 32;
      o.sc1[r] = static_cast<int32_t>(low >> 4 | ((high >> 2) & 3u) << 4) - 32;
    }
    std::memset(o.q, 0, sizeof o.q);
    add_pairs(p, 1, o.q);
    add_bits(p + 128, 4, o.q);
    subtract(4, o.q);
  }
};
struct Q2_K {
  static constexpr Step kStep = Step::kHalvesMin;
  static constexpr int kBlocks = 8, kBytes = 16 * 84;
  static void block(const uint8_t* w, int j, Block& o) {
    const uint8_t* p = w + 64 + 160 * j;
    load_f16(w, o.a);
    load_f16(w + 32, o.b);
    for (int r = 0; r < kRowGroup; ++r) {
      o.sc0[r] = p[r] & 15;
      o.mn0[r] = p[r] >> 4;
      o.sc1[r] = p[16 + r] & 15;
      o.mn1[r] = p[16 + r] >> 4;
    }
    std::memset(o.q, 0, sizeof o.q);
    add_pairs(p + 32, 1, o.q);
  }
};
struct IQ4_XS {
  static constexpr Step kStep = Step::kScale;
  static constexpr int kBlocks = 8, kBytes = 16 * 136;
  static void block(const uint8_t* w, int j, Block& o) {
    for (int r = 0; r < kRowGroup; ++r) {
      const uint32_t low = load<uint32_t>(w + 32 + 4 * r) >> (4 * j) & 15u;
      const uint32_t high = load<uint16_t>(w + 96 + 2 * r) >> (2 * j) & 3u;
      o.a[r] = f16(w + 2 * r) * static_cast<float>(static_cast<int32_t>(low | high << 4) - 32);
    }
    nibbles(w + 128 + 256 * j, o.q);
    look_up(kIq4, o.q);
  }
};

int32_t dot(const int16_t* a, const int16_t* b, int n) {
  int32_t sum = 0;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void store(const Tile& a, int t, int row, float acc) {
  float v = a.first ? acc : a.y[t][row] + acc;
  if (a.bias) v = v + a.bias[row];
  if (a.residual) v = v + a.residual[t][row];
  a.y[t][row] = v;
}

template <class F>
void tile(const Tile& a) {
  float acc[kMaxTile][kRowGroup] = {};
  const uint8_t* w = a.w;
  const uint8_t* x = a.x;
  Block blk;
  for (int64_t u = 0; u < a.k / (kActBlock * F::kBlocks); ++u, w += F::kBytes) {
    for (int j = 0; j < F::kBlocks; ++j, x += kActBytes * a.width) {
      F::block(w, j, blk);
      for (int t = 0; t < a.tokens; ++t) {
        int16_t q[kActBlock];
        for (int i = 0; i < kActBlock; ++i) q[i] = load<int8_t>(x + t * kActBlock + i);
        const float d = load<float>(x + kActD * a.width + 4 * t), s = load<float>(x + kActS * a.width + 4 * t);
        const int32_t h0 = load<int16_t>(x + kActH * a.width + 4 * t),
                      h1 = load<int16_t>(x + kActH * a.width + 4 * t + 2);
        for (int r = 0; r < kRowGroup; ++r) {
          int32_t e;
          if constexpr (F::kStep == Step::kHalves || F::kStep == Step::kHalvesMin) {
            e = blk.sc0[r] * dot(blk.q[r], q, 16) + blk.sc1[r] * dot(blk.q[r] + 16, q + 16, 16);
          } else {
            e = dot(blk.q[r], q, 32);
          }
          float v = __builtin_fmaf(static_cast<float>(e), blk.a[r] * d, acc[t][r]);
          if constexpr (F::kStep == Step::kScaleMin) v = __builtin_fmaf(blk.b[r], s, v);
          if constexpr (F::kStep == Step::kHalvesMin) {
            const float m = static_cast<float>(blk.mn0[r] * h0 + blk.mn1[r] * h1);
            v = __builtin_fmaf(-m, blk.b[r] * d, v);
          }
          acc[t][r] = v;
        }
      }
    }
  }
  for (int t = 0; t < a.tokens; ++t) {
    for (int r = 0; r < a.rows; ++r) store(a, t, r, acc[t][r]);
  }
}

struct F32 {
  static constexpr int kBytes = 4;
  static float value(const uint8_t* p) { return load<float>(p); }
};
struct F16 {
  static constexpr int kBytes = 2;
  static float value(const uint8_t* p) { return f16(p); }
};
struct BF16 {
  static constexpr int kBytes = 2;
  static float value(const uint8_t* p) {
    const uint32_t bits = static_cast<uint32_t>(load<uint16_t>(p)) << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
  }
};

template <class F>
void float_tile(const Tile& a) {
  float acc[kMaxTile][kRowGroup] = {};
  for (int64_t i = 0; i < a.k; ++i) {
    float w[kRowGroup];
    for (int r = 0; r < kRowGroup; ++r) w[r] = F::value(a.w + (i * kRowGroup + r) * F::kBytes);
    for (int t = 0; t < a.tokens; ++t) {
      const float x = load<float>(a.x + (i * a.width + t) * 4);
      for (int r = 0; r < kRowGroup; ++r) acc[t][r] = __builtin_fmaf(w[r], x, acc[t][r]);
    }
  }
  for (int t = 0; t < a.tokens; ++t) {
    for (int r = 0; r < a.rows; ++r) store(a, t, r, acc[t][r]);
  }
}

template <typename T>
void put(uint8_t* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

void quantize_block(const float* x, uint8_t* dst, int width, int t) {
  uint32_t most = 0;
  for (int i = 0; i < kActBlock; ++i) {
    uint32_t bits;
    std::memcpy(&bits, x + i, 4);
    bits &= 0x7fffffffu;
    most = bits > most ? bits : most;
  }
  uint8_t* q = dst + t * kActBlock;
  float d, s;
  int32_t h[2] = {0, 0};
  if (most >= 0x7f800000u || most < 0x0d800000u) {  // infinity or NaN; below 2^-100
    const uint32_t bits = most >= 0x7f800000u ? 0x7fc00000u : 0u;
    std::memcpy(&d, &bits, 4);
    s = d;
    std::memset(q, 0, kActBlock);
  } else {
    float amax;
    std::memcpy(&amax, &most, 4);
    d = amax / 127.0f;
    const float id = 127.0f / amax;
    for (int i = 0; i < kActBlock; ++i) {
      // |x * id| < 128: adding 1.5 * 2^23 rounds to an integer, to nearest even.
      const int32_t v = static_cast<int32_t>((x[i] * id + 12582912.0f) - 12582912.0f);
      put(q + i, static_cast<int8_t>(v));
      h[i / 16] += v;
    }
    s = d * static_cast<float>(h[0] + h[1]);
  }
  const int32_t sum = h[0] + h[1];
  put(dst + kActD * width + 4 * t, d);
  put(dst + kActS * width + 4 * t, s);
  put(dst + kActH * width + 4 * t, static_cast<int16_t>(h[0]));
  put(dst + kActH * width + 4 * t + 2, static_cast<int16_t>(h[1]));
  put(dst + kActN8 * width + 4 * t, -8 * sum);
  put(dst + kActN16 * width + 4 * t, -16 * sum);
  put(dst + kActN127 * width + 4 * t, -127 * sum);
  put(dst + kActN128 * width + 4 * t, -128 * sum);
}

void quantize(const float* const* x, int tokens, int width, int64_t k, uint8_t* dst) {
  for (int64_t b = 0; b < k / kActBlock; ++b, dst += kActBytes * width) {
    if (tokens < width) std::memset(dst, 0, static_cast<size_t>(kActBytes * width));
    for (int t = 0; t < tokens; ++t) quantize_block(x[t] + b * kActBlock, dst, width, t);
  }
}

void interleave(const float* const* x, int tokens, int width, int64_t k, float* dst) {
  for (int64_t i = 0; i < k; ++i, dst += width) {
    for (int t = 0; t < width; ++t) dst[t] = t < tokens ? x[t][i] : 0.0f;
  }
}

const int kWidths[] = {1, 2, 4, 8, 16};

void fill(FormatKernels& k, TileFn fn) {
  k.groups = 1;
  for (const int w : kWidths) k.tile[w] = fn;
}

}  // namespace

void fill_matmul_kernels_generic(MatmulKernels* k) {
  k->isa = "scalar";
  int n = 0;
  for (const int w : kWidths) k->widths[n] = k->float_widths[n] = w, ++n;
  k->quantize = quantize;
  k->interleave = interleave;
  FormatKernels* f = k->formats;
  fill(f[kFmtF32], float_tile<F32>);
  fill(f[kFmtF16], float_tile<F16>);
  fill(f[kFmtBF16], float_tile<BF16>);
  fill(f[kFmtQ4_0], tile<Q4_0>);
  fill(f[kFmtQ4_1], tile<Q4_1>);
  fill(f[kFmtQ5_0], tile<Q5_0>);
  fill(f[kFmtQ5_1], tile<Q5_1>);
  fill(f[kFmtQ8_0], tile<Q8_0>);
  fill(f[kFmtQ2_K], tile<Q2_K>);
  fill(f[kFmtQ3_K], tile<Q3_K>);
  fill(f[kFmtQ4_K], tile<Q4_K>);
  fill(f[kFmtQ5_K], tile<Q5_K>);
  fill(f[kFmtQ6_K], tile<Q6_K>);
  fill(f[kFmtIQ4_NL], tile<IQ4_NL>);
  fill(f[kFmtIQ4_XS], tile<IQ4_XS>);
  fill(f[kFmtMXFP4], tile<MXFP4>);
}

}  // namespace minfer::cpu
