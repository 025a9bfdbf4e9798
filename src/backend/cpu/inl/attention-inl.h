// Attention bodies for one tile of 256 positions. Included after a vec-inl.h, math-inl.h and q8-inl.h; everything is
// internal to the including file.
// A lane owns a position for K and a feature for V, so every sum runs in the order docs/numerics.md gives without
// adding across lanes. Rows are taken up to kMaxRows at a time, so that a K or V vector is loaded once for them all.
#pragma once

#include "backend/cpu/kernels.h"

namespace minfer::cpu {
namespace {

constexpr int kMaxRows = kAcc < 6 ? kAcc : 6;
// Positions of V mixed before the next features: 64 rows of 64 f16 features are 8 KiB and stay in the L1 cache for all
// rows.
constexpr int kMixPositions = 64;

// The largest power of two <= 4 with rows * it <= budget; at least 1.
constexpr int vectors_for(int rows, int budget) { return rows * 4 <= budget ? 4 : rows * 2 <= budget ? 2 : 1; }

template <int N>
struct Int {
  static constexpr int value = N;
};

// Calls fn(Int<n>) for 1 <= n <= kMax <= 6.
template <int kMax, typename Fn>
inline void with_count(int n, Fn fn) {
  if constexpr (kMax >= 6) {
    if (n == 6) return fn(Int<6>{});
  }
  if constexpr (kMax >= 5) {
    if (n == 5) return fn(Int<5>{});
  }
  if constexpr (kMax >= 4) {
    if (n == 4) return fn(Int<4>{});
  }
  if constexpr (kMax >= 3) {
    if (n == 3) return fn(Int<3>{});
  }
  if constexpr (kMax >= 2) {
    if (n == 2) return fn(Int<2>{});
  }
  return fn(Int<1>{});
}

// Even shares of at most kMax: 7 rows are 4 + 3.
inline int rows_per_chunk(int n_rows, int max_rows) {
  const int chunks = (n_rows + max_rows - 1) / max_rows;
  return (n_rows + chunks - 1) / chunks;
}

template <KvType kType>
constexpr int64_t kElementBytes = kType == KvType::kF32    ? 4
                                  : kType == KvType::kQ8_0 ? 1
                                                           : 2;

template <KvType kType>
inline F load_kv(const std::byte* p) {
  if constexpr (kType == KvType::kF32) return load(reinterpret_cast<const float*>(p));
  if constexpr (kType == KvType::kF16) return load_f16(reinterpret_cast<const uint16_t*>(p));
  if constexpr (kType == KvType::kBF16) return load_bf16(reinterpret_cast<const uint16_t*>(p));
  if constexpr (kType == KvType::kQ8_0) return load_i8(reinterpret_cast<const int8_t*>(p));
}
template <KvType kType>
inline F load_kv_n(const std::byte* p, int n) {  // q8_0 has no tails: head_dim is a multiple of 32
  if constexpr (kType == KvType::kF32) return load_n(reinterpret_cast<const float*>(p), n);
  if constexpr (kType == KvType::kF16) return load_f16_n(reinterpret_cast<const uint16_t*>(p), n);
  if constexpr (kType == KvType::kBF16) return load_bf16_n(reinterpret_cast<const uint16_t*>(p), n);
  return load_kv<kType>(p);
}

// Fetches the part of a head block of `block_bytes` that belongs to features [from, to) of head_dim; per_feature is
// block_bytes / head_dim in 16.16 fixed point. Only the first chunk of rows does it, for all.
inline int64_t bytes_per_feature(int64_t block_bytes, int64_t head_dim) { return (block_bytes << 16) / head_dim; }
inline void prefetch_features(const std::byte* block, int64_t per_feature, int64_t from, int64_t to) {
  const int64_t first = (from * per_feature) >> 16;
  prefetch(block + first, ((to * per_feature) >> 16) - first);
}

// --- scores -----------------------------------------------------------------------------------------------------

template <KvType kType, int R, int P>
inline void scores_float(const AttnTile& t, int row, int group) {
  const float* q = t.q + row * t.q_stride;
  const int64_t per_feature = bytes_per_feature(t.v_bytes, t.head_dim);
  const std::byte* k[P];
  F acc[R][P];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) k[p] = t.k[group + p];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) acc[r][p] = zero();
  }
  for (int64_t i = 0; i < t.head_dim; ++i) {
    if (row == 0 && i % 8 == 0) {
      for (int p = 0; p < P; ++p)
        prefetch_features(t.v[group + p], per_feature, i, i + 8 < t.head_dim ? i + 8 : t.head_dim);
    }
    F kv[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) kv[p] = load_kv<kType>(k[p] + i * 16 * kElementBytes<kType>);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const F qr = set1(q[r * t.q_stride + i]);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) acc[r][p] = fma(qr, kv[p], acc[r][p]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) store(t.s + (row + r) * kTilePositions + (group + p) * 16, acc[r][p]);
  }
}

template <int R, int P>
inline void scores_q8(const AttnTile& t, int row, int group) {
  const int64_t blocks = t.head_dim / 32, per_feature = bytes_per_feature(t.v_bytes, t.head_dim);
  F acc[R][P];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) acc[r][p] = zero();
  }
  for (int64_t b = 0; b < blocks; ++b) {
    if (row == 0) {
      for (int p = 0; p < P; ++p) prefetch_features(t.v[group + p], per_feature, b * 32, b * 32 + 32);
    }
    const int8_t* q = t.q_codes + row * t.head_dim + b * 32;
    const int64_t qb = row * blocks + b;
    I dot[R][P];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const I start = dot_start(t.q_sum[qb + r * blocks]);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) dot[r][p] = start;
    }
    for (int i = 0; i < 8; ++i) {
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        const KeyCodes k = load_keys(reinterpret_cast<const int8_t*>(t.k[group + p] + b * 544 + 32 + i * 64));
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) dot[r][p] = dot4(dot[r][p], k, q + r * t.head_dim + i * 4);
      }
    }
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      const F dk = load_f16(reinterpret_cast<const uint16_t*>(t.k[group + p] + b * 544));
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        acc[r][p] = fma(to_f32(dot[r][p]), mul(dk, set1(t.q_d[qb + r * blocks])), acc[r][p]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) store(t.s + (row + r) * kTilePositions + (group + p) * 16, acc[r][p]);
  }
}

template <KvType kType>
void scores(const AttnTile& t) {
  // The int8 form keeps two accumulators per row and group.
  constexpr int kBudget = kType == KvType::kQ8_0 ? (kAcc + 1) / 2 : kAcc;
  constexpr int kRows = kMaxRows < kBudget ? kMaxRows : kBudget;
  const int step = rows_per_chunk(t.n_rows, kRows);
  for (int row = 0; row < t.n_rows; row += step) {
    with_count<kRows>(t.n_rows - row < step ? t.n_rows - row : step, [&](auto rows) {
      constexpr int R = decltype(rows)::value, P = vectors_for(R, kBudget);
      auto block = [&](auto groups, int g) {
        constexpr int N = decltype(groups)::value;
        if constexpr (kType == KvType::kQ8_0) {
          scores_q8<R, N>(t, row, g);
        } else {
          scores_float<kType, R, N>(t, row, g);
        }
      };
      int g = t.group_begin;
      for (; g + P <= t.group_end; g += P) block(Int<P>{}, g);
      if constexpr (P > 1) {
        for (; g < t.group_end; ++g) block(Int<1>{}, g);
      }
    });
  }
}

// --- softmax ----------------------------------------------------------------------------------------------------

void softmax(const AttnTile& t) {
  const F scale = set1(t.scale), cap = set1(t.softcap), lowest = set1(-__builtin_inff());
  auto lane = [](int i) { return i < 0 ? 0 : i > 16 ? 16 : i; };
  for (int r = 0; r < t.n_rows; ++r) {
    const int begin = t.begin[r], end = t.end[r];
    if (begin >= end) continue;
    float* s = t.s + r * kTilePositions;
    F top = lowest;
    bool nan = false;
    for (int p = begin / 16 * 16; p < end; p += 16) {
      F x = mul(load(s + p), scale);
      if (t.softcap > 0.0f) x = softcap(x, cap);
      store(s + p, x);
      const M seen = lanes(lane(begin - p), lane(end - p));
      nan = nan || any(both(seen, unordered(x)));
      top = max(select(seen, x, lowest), top);
    }
    const float m = nan ? __builtin_nanf("") : max_lane(top);
    const F mv = set1(m);
    F sum = zero();
    for (int p = begin / 16 * 16; p < end; p += 16) {
      const M seen = lanes(lane(begin - p), lane(end - p));
      const F w = select(seen, exp(sub(load(s + p), mv)), zero());
      store(s + p, w);
      sum = add(sum, w);
    }
    t.m[r] = m;
    t.l[r] = tree_sum(sum);
  }
}

// --- mix --------------------------------------------------------------------------------------------------------

// Where the weights of a chunk of rows stand: w[r * stride + position of the tile], and where features from the third
// vector on have others (q8_0: the next block of 32), those at the same place of w2; else w2 = w.
struct Weights {
  const float *w, *w2;
  int64_t stride;
  Weights row(int r) const { return {w + r * stride, w2 + r * stride, 0}; }
};

// o[row + r][feature ...] over positions [begin, end), for N vectors of features (the last `tail` lanes when kTail).
template <KvType kType, int R, int N, bool kTail>
inline void mix_range(const AttnTile& t, Weights w, int row, int64_t feature, int begin, int end, int tail) {
  if (begin >= end) return;
  const int64_t row_bytes = t.head_dim * kElementBytes<kType>;
  const int64_t first =
      feature * kElementBytes<kType> + (kType == KvType::kQ8_0 ? t.head_dim : 0);  // 16 * head_dim/32 scales
  const int64_t per_feature = bytes_per_feature(t.k_bytes, t.head_dim);
  float* o = t.o + row * t.o_stride + feature;
  F acc[R][N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) acc[r][n] = load(o + r * t.o_stride + n * 16);
  }
  for (int j = begin; j < end;) {
    const int stop = (j / 16 + 1) * 16 < end ? (j / 16 + 1) * 16 : end;
    const std::byte* v = t.v[j / 16] + first + j % 16 * row_bytes;
    if (row == 0 && t.next_k[j / 16] != nullptr) {
      prefetch_features(t.next_k[j / 16], per_feature, feature,
                        feature + N * 16 < t.head_dim ? feature + N * 16 : t.head_dim);
    }
    for (; j < stop; ++j, v += row_bytes) {
      F x[N];
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) {
        x[n] = kTail ? load_kv_n<kType>(v, tail) : load_kv<kType>(v + n * 16 * kElementBytes<kType>);
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const F wr = set1(w.w[r * w.stride + j]);
        if constexpr (kType == KvType::kQ8_0 && N == 4) {
          const F wr2 = set1(w.w2[r * w.stride + j]);
#pragma GCC unroll 8
          for (int n = 0; n < N; ++n) acc[r][n] = fma(n < 2 ? wr : wr2, x[n], acc[r][n]);
        } else {
#pragma GCC unroll 8
          for (int n = 0; n < N; ++n) acc[r][n] = fma(wr, x[n], acc[r][n]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) store(o + r * t.o_stride + n * 16, acc[r][n]);
  }
}

// The positions all R rows see together, and before and after them what each row sees alone: a row's sum never holds a
// position it does not see, where V may be anything.
template <KvType kType, int R, int N, bool kTail>
inline void mix_rows(const AttnTile& t, Weights w, int row, int64_t feature, int p0, int p1, int tail) {
  int begin[R], end[R], from = p0, to = p1;
  for (int r = 0; r < R; ++r) {
    begin[r] = t.begin[row + r] > p0 ? t.begin[row + r] : p0;
    end[r] = t.end[row + r] < p1 ? t.end[row + r] : p1;
    from = begin[r] > from ? begin[r] : from;
    to = end[r] < to ? end[r] : to;
  }
  if constexpr (R > 1) {
    const bool together = from < to;
    for (int r = 0; r < R; ++r) {
      mix_range<kType, 1, N, kTail>(t, w.row(r), row + r, feature, begin[r], together ? from : end[r], tail);
    }
    if (!together) return;
    mix_range<kType, R, N, kTail>(t, w, row, feature, from, to, tail);
    for (int r = 0; r < R; ++r) {
      mix_range<kType, 1, N, kTail>(t, w.row(r), row + r, feature, to, end[r], tail);
    }
  } else {
    mix_range<kType, 1, N, kTail>(t, w, row, feature, from, to, tail);
  }
}

// Calls fn(Int<R>, row) for each chunk of rows.
template <typename Fn>
inline void each_chunk(int n_rows, int step, Fn fn) {
  for (int row = 0; row < n_rows; row += step) {
    with_count<kMaxRows>(n_rows - row < step ? n_rows - row : step, [&](auto rows) { fn(rows, row); });
  }
}

template <KvType kType, int N, bool kTail>
inline void mix_features(const AttnTile& t, int64_t feature, int step, int p0, int p1, int tail) {
  each_chunk(t.n_rows, step, [&](auto rows, int row) {
    constexpr int R = decltype(rows)::value;
    if constexpr (R * N <= kAcc || N == 1) {
      const float* w = t.s + row * kTilePositions;
      mix_rows<kType, R, N, kTail>(t, {w, w, kTilePositions}, row, feature, p0, p1, tail);
    }
  });
}

template <KvType kType>
void mix(const AttnTile& t) {
  const int step = rows_per_chunk(t.n_rows, kMaxRows);
  for (int r = 0; r < t.n_rows; ++r) std::memset(t.o + r * t.o_stride, 0, static_cast<size_t>(t.o_stride) * 4);
  const int wide = vectors_for(step, kAcc);
  for (int p0 = t.group_begin * 16; p0 < t.group_end * 16; p0 += kMixPositions) {
    const int p1 = p0 + kMixPositions < t.group_end * 16 ? p0 + kMixPositions : t.group_end * 16;
    int64_t f = 0;
    while (f + 16 <= t.head_dim) {
      if (wide == 4 && f + 64 <= t.head_dim) {
        mix_features<kType, 4, false>(t, f, step, p0, p1, 0), f += 64;
      } else if (wide >= 2 && f + 32 <= t.head_dim) {
        mix_features<kType, 2, false>(t, f, step, p0, p1, 0), f += 32;
      } else {
        mix_features<kType, 1, false>(t, f, step, p0, p1, 0), f += 16;
      }
    }
    if (f < t.head_dim) mix_features<kType, 1, true>(t, f, step, p0, p1, static_cast<int>(t.head_dim - f));
  }
}

// The scales of block b of 16 positions' values, which stand [16][blocks].
inline F value_scales(const std::byte* v, int64_t blocks, int64_t b) {
  const auto* d = reinterpret_cast<const uint16_t*>(v);
  if (blocks == 4) return load_f16_every<4>(d, static_cast<int>(b));
  if (blocks == 2) return load_f16_every<2>(d, static_cast<int>(b));
  uint16_t h[16];
  for (int j = 0; j < 16; ++j) std::memcpy(h + j, d + j * blocks + b, 2);
  return load_f16(h);
}

// q8_0: the weight of a position is first multiplied by the scale of the value's block of 32 features. kBlocks blocks
// at a time.
template <int kBlocks>
inline void mix_q8_blocks(const AttnTile& t, int step, int64_t b, int p0, int p1) {
  const int64_t blocks = t.head_dim / 32;
  float scales[kBlocks][kMixPositions];
  for (int p = p0; p < p1; p += 16) {
    for (int i = 0; i < kBlocks; ++i) store(scales[i] + (p - p0), value_scales(t.v[p / 16], blocks, b + i));
  }
  each_chunk(t.n_rows, step, [&](auto rows, int row) {
    constexpr int R = decltype(rows)::value, kWide = vectors_for(R, kAcc);
    constexpr int N = kBlocks == 2 && kWide == 4 ? 4 : kWide >= 2 ? 2 : 1;
    float w[kBlocks][R * kMixPositions];
    for (int r = 0; r < R; ++r) {
      const int begin = t.begin[row + r] > p0 ? t.begin[row + r] : p0;
      const int end = t.end[row + r] < p1 ? t.end[row + r] : p1;
      for (int p = begin / 16 * 16; p < end; p += 16) {
        const F s = load(t.s + (row + r) * kTilePositions + p);
        for (int i = 0; i < kBlocks; ++i) {
          store(w[i] + r * kMixPositions + (p - p0), mul(s, load(scales[i] + (p - p0))));
        }
      }
    }
    if constexpr (N == 4) {
      mix_rows<KvType::kQ8_0, R, N, false>(t, {w[0] - p0, w[1] - p0, kMixPositions}, row, b * 32, p0, p1, 0);
    } else {
      for (int i = 0; i < kBlocks; ++i) {
        const Weights wi = {w[i] - p0, w[i] - p0, kMixPositions};
        for (int n = 0; n < 2; n += N) {
          mix_rows<KvType::kQ8_0, R, N, false>(t, wi, row, (b + i) * 32 + n * 16, p0, p1, 0);
        }
      }
    }
  });
}

void mix_q8(const AttnTile& t) {
  const int step = rows_per_chunk(t.n_rows, kMaxRows);
  const int64_t blocks = t.head_dim / 32;
  for (int r = 0; r < t.n_rows; ++r) std::memset(t.o + r * t.o_stride, 0, static_cast<size_t>(t.o_stride) * 4);
  for (int p0 = t.group_begin * 16; p0 < t.group_end * 16; p0 += kMixPositions) {
    const int p1 = p0 + kMixPositions < t.group_end * 16 ? p0 + kMixPositions : t.group_end * 16;
    int64_t b = 0;
    if (vectors_for(step, kAcc) == 4) {
      for (; b + 2 <= blocks; b += 2) mix_q8_blocks<2>(t, step, b, p0, p1);
    }
    for (; b < blocks; ++b) mix_q8_blocks<1>(t, step, b, p0, p1);
  }
}

// --- across tiles -----------------------------------------------------------------------------------------------

void merge(float m, float l, const float* o, float* big_m, float* big_l, float* big_o, int64_t head_dim) {
  const float top = m > *big_m || m != m ? m : *big_m;  // NaN wins
  const F a = exp(set1(*big_m - top)), b = exp(set1(m - top));
  store_n(big_l, fma(set1(l), b, mul(set1(*big_l), a)), 1);
  for (int64_t i = 0; i < head_dim; i += 16) {
    const int n = head_dim - i < 16 ? static_cast<int>(head_dim - i) : 16;
    store_n(big_o + i, fma(load_n(o + i, n), b, mul(load_n(big_o + i, n), a)), n);
  }
  *big_m = top;
}

void divide(const float* o, float l, float* y, int64_t head_dim) {
  const F sum = set1(l);
  for (int64_t i = 0; i < head_dim; i += 16) {
    const int n = head_dim - i < 16 ? static_cast<int>(head_dim - i) : 16;
    store_n(y + i, div(load_n(o + i, n), sum), n);
  }
}

void quantize_q(const float* x, int8_t* codes, float* d, int32_t* sum, int64_t n) {
  for (int64_t b = 0; b < n / 32; ++b) sum[b] = quantize_block(x + b * 32, codes + b * 32, d + b);
}

constexpr AttnKernels kAttn = {
    {scores<KvType::kF32>, scores<KvType::kF16>, scores<KvType::kBF16>, scores<KvType::kQ8_0>},
    softmax,
    {mix<KvType::kF32>, mix<KvType::kF16>, mix<KvType::kBF16>, mix_q8},
    merge,
    divide,
    quantize_q,
};

}  // namespace
}  // namespace minfer::cpu
