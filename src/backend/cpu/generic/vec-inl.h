// Sixteen f32 lanes as an array: the vector type of the bodies in ../inl in plain C++.
// Compiled with the baseline flags, so it may use base/ headers.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/f16.h"
#include "base/fmath.h"

namespace minfer::cpu {
namespace {

constexpr int kAcc = 1;  // rows x groups kept together: nothing is gained by more without registers
constexpr int kLanes = 16;

struct F {
  float v[kLanes];
};
struct M {
  bool v[kLanes];
};
struct I {
  int32_t v[kLanes];
};

template <typename Fn>
inline F each(Fn fn) {
  F r;
  for (int j = 0; j < kLanes; ++j) r.v[j] = fn(j);
  return r;
}
template <typename Fn>
inline M each_mask(Fn fn) {
  M r;
  for (int j = 0; j < kLanes; ++j) r.v[j] = fn(j);
  return r;
}

inline F set1(float x) {
  return each([=](int) { return x; });
}
inline F zero() { return set1(0.0f); }
inline F load(const float* p) {
  return each([=](int j) { return p[j]; });
}
inline F load_n(const float* p, int n) {
  return each([=](int j) { return j < n ? p[j] : 0.0f; });
}
inline void store_n(float* p, F x, int n) { std::memcpy(p, x.v, static_cast<size_t>(n) * 4); }
inline void store(float* p, F x) { store_n(p, x, kLanes); }
inline F add(F a, F b) {
  return each([&](int j) { return a.v[j] + b.v[j]; });
}
inline F sub(F a, F b) {
  return each([&](int j) { return a.v[j] - b.v[j]; });
}
inline F mul(F a, F b) {
  return each([&](int j) { return a.v[j] * b.v[j]; });
}
inline F div(F a, F b) {
  return each([&](int j) { return a.v[j] / b.v[j]; });
}
inline F fma(F a, F b, F c) {
  return each([&](int j) { return std::fma(a.v[j], b.v[j], c.v[j]); });
}
inline F neg(F a) {
  return each([&](int j) { return -a.v[j]; });
}
inline F abs(F a) {
  return each([&](int j) { return std::fabs(a.v[j]); });
}
inline F copysign(F mag, F sign) {
  return each([&](int j) { return std::copysign(mag.v[j], sign.v[j]); });
}
inline F max(F a, F b) {
  return each([&](int j) { return a.v[j] > b.v[j] ? a.v[j] : b.v[j]; });
}
inline F rint(F a) {
  return each([&](int j) { return std::rint(a.v[j]); });
}
inline M gt(F a, F b) {
  return each_mask([&](int j) { return a.v[j] > b.v[j]; });
}
inline M lt(F a, F b) {
  return each_mask([&](int j) { return a.v[j] < b.v[j]; });
}
inline M unordered(F a) {
  return each_mask([&](int j) { return a.v[j] != a.v[j]; });
}
inline M lanes(int begin, int end) {
  return each_mask([=](int j) { return j >= begin && j < end; });
}
inline M both(M a, M b) {
  return each_mask([&](int j) { return a.v[j] && b.v[j]; });
}
inline bool any(M a) {
  bool r = false;
  for (bool x : a.v) r = r || x;
  return r;
}
inline F select(M m, F yes, F no) {
  return each([&](int j) { return m.v[j] ? yes.v[j] : no.v[j]; });
}
inline float pow2(int32_t n) {
  const uint32_t bits = static_cast<uint32_t>(n + 127) << 23;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
// p * 2^n for integral n in -150..128, in two multiplications as exp_f32 does; any other n gives some value.
inline F scale_pow2(F p, F n) {
  return each([&](int j) {
    const bool in_range = n.v[j] >= -150.0f && n.v[j] <= 128.0f;
    const auto i = in_range ? static_cast<int32_t>(n.v[j]) : 0;
    const int32_t n1 = i >> 1;
    return p.v[j] * pow2(n1) * pow2(i - n1);
  });
}
inline F dup_even(F a) {
  return each([&](int j) { return a.v[j & ~1]; });
}
inline F dup_odd(F a) {
  return each([&](int j) { return a.v[j | 1]; });
}
inline float tree_sum(F a) {  // lane j plus lane j + 8, then 4, 2, 1
  for (int half = 8; half >= 1; half /= 2) {
    for (int j = 0; j < half; ++j) a.v[j] += a.v[j + half];
  }
  return a.v[0];
}
inline float max_lane(F a) {
  float m = a.v[0];
  for (float x : a.v) m = x > m ? x : m;
  return m;
}

inline F load_f16_n(const uint16_t* p, int n) {
  return each([=](int j) { return j < n ? f16_to_f32(p[j]) : 0.0f; });
}
inline F load_f16(const uint16_t* p) { return load_f16_n(p, kLanes); }
// Elements at, at + kStride, ...: 16 of them.
template <int kStride>
inline F load_f16_every(const uint16_t* p, int at) {
  uint16_t t[16];
  for (int i = 0; i < 16; ++i) std::memcpy(t + i, p + i * kStride + at, 2);
  return load_f16(t);
}
inline F load_bf16_n(const uint16_t* p, int n) {
  return each([=](int j) { return j < n ? bf16_to_f32(p[j]) : 0.0f; });
}
inline F load_bf16(const uint16_t* p) { return load_bf16_n(p, kLanes); }
inline F load_i8(const int8_t* p) {
  return each([=](int j) { return static_cast<float>(p[j]); });
}
inline void store_f16(uint16_t* p, F x) {
  for (int j = 0; j < kLanes; ++j) p[j] = f32_to_f16(x.v[j]);
}
inline void store_bf16(uint16_t* p, F x) {
  for (int j = 0; j < kLanes; ++j) p[j] = f32_to_bf16(x.v[j]);
}

inline F erf(F x) {
  return each([&](int j) { return erf_f32(x.v[j]); });
}

// --- int8 ---
inline I set1_i(int32_t x) {
  I r;
  for (int32_t& y : r.v) y = x;
  return r;
}
inline F to_f32(I a) {
  return each([&](int j) { return static_cast<float>(a.v[j]); });
}
inline uint32_t max_abs_bits(F a, F b) {  // the largest |lane| as a bit pattern
  uint32_t m = 0;
  for (int j = 0; j < kLanes; ++j) {
    uint32_t x, y;
    std::memcpy(&x, &a.v[j], 4);
    std::memcpy(&y, &b.v[j], 4);
    x &= 0x7fffffffu, y &= 0x7fffffffu;
    m = x > m ? x : m;
    m = y > m ? y : m;
  }
  return m;
}
inline I store_codes(int8_t* p, F x) {  // Requires: |lane| <= 127
  I r;
  for (int j = 0; j < kLanes; ++j) {
    r.v[j] = static_cast<int32_t>(std::rint(x.v[j]));
    p[j] = static_cast<int8_t>(r.v[j]);
  }
  return r;
}
inline int32_t sum_i(I a, I b) {
  int32_t s = 0;
  for (int j = 0; j < kLanes; ++j) s += a.v[j] + b.v[j];
  return s;
}

struct KeyCodes {
  const int8_t* p;  // [16 slots][4]
};
inline KeyCodes load_keys(const int8_t* p) { return {p}; }
inline I dot_start(int32_t) { return set1_i(0); }
inline I dot4(I acc, KeyCodes k, const int8_t* q) {  // q: 4 codes, the same for every slot
  for (int j = 0; j < kLanes; ++j) {
    for (int i = 0; i < 4; ++i) acc.v[j] += k.p[4 * j + i] * q[i];
  }
  return acc;
}

inline double sum_squares(const float* x, int64_t d) {
  double lane[64] = {};
  for (int64_t i = 0; i < d; ++i) lane[i % 64] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  for (int half = 32; half >= 1; half /= 2) {
    for (int j = 0; j < half; ++j) lane[j] += lane[j + half];
  }
  return lane[0];
}
inline double sqrt_f64(double x) { return std::sqrt(x); }
inline float f16_value(uint16_t h) { return f16_to_f32(h); }
inline uint16_t f16_of(float x) { return f32_to_f16(x); }
inline void prefetch(const std::byte*, int64_t) {}

}  // namespace
}  // namespace minfer::cpu
