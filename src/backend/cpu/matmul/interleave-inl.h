// Interleaving rows of floats with 128-bit transposes: x[t][i] -> dst[i][t]. Included by the x86 ISA folders.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace minfer::cpu {
namespace {

// Four tokens from t on.
inline __attribute__((always_inline)) void interleave_4(const float* const* x, int t, int width, int64_t k,
                                                        float* dst) {
  int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    __m128 a = _mm_loadu_ps(x[t] + i), b = _mm_loadu_ps(x[t + 1] + i);
    __m128 c = _mm_loadu_ps(x[t + 2] + i), d = _mm_loadu_ps(x[t + 3] + i);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    float* p = dst + i * width + t;
    _mm_storeu_ps(p, a);
    _mm_storeu_ps(p + width, b);
    _mm_storeu_ps(p + 2 * width, c);
    _mm_storeu_ps(p + 3 * width, d);
  }
  for (; i < k; ++i) {
    for (int j = 0; j < 4; ++j) dst[i * width + t + j] = x[t + j][i];
  }
}

inline __attribute__((always_inline)) void interleave_rows(const float* const* x,  // [tokens] pointers to [k]
                                                           int tokens, int width, int64_t k,
                                                           float* dst) {  // [k][width], missing tokens zero
  int t = 0;
  for (; t + 4 <= tokens; t += 4) interleave_4(x, t, width, k, dst);
  for (; t < tokens; ++t) {
    for (int64_t i = 0; i < k; ++i) dst[i * width + t] = x[t][i];
  }
  for (; t < width; ++t) {
    for (int64_t i = 0; i < k; ++i) dst[i * width + t] = 0.0f;
  }
}

}  // namespace
}  // namespace minfer::cpu
