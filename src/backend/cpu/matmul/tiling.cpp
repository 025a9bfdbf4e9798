#include "backend/cpu/matmul/tiling.h"

#include <algorithm>

namespace minfer::cpu {

Tiling make_tiling(const int* widths, int64_t n) {
  Tiling t;
  t.n = n;
  if (n <= 0) return t;
  int widest = 0;
  while (widths[widest + 1] != 0) ++widest;
  t.full = widths[widest];
  t.count = (n + t.full - 1) / t.full;
  const int64_t rest = n - (t.count - 1) * t.full;
  int i = 0;
  while (widths[i] < rest) ++i;
  t.last = widths[i];
  return t;
}

namespace {

int64_t round64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Tokens of all tiles, padding included.
int64_t padded(const Tiling& t) { return t.count == 0 ? 0 : (t.count - 1) * t.full + t.last; }

int64_t segments(int64_t k) { return (k + kSegment - 1) / kSegment; }

}  // namespace

int64_t q8_bytes(const MatmulKernels& kernels, int64_t n, int64_t k) {
  return round64(padded(make_tiling(kernels.widths, n)) * (k / kActBlock) * kActBytes);
}

int64_t f32_bytes(const MatmulKernels& kernels, int64_t n, int64_t k) {
  return round64(padded(make_tiling(kernels.float_widths, n)) * k * 4);
}

int64_t unpack_bytes(const MatmulKernels& kernels) {
  int64_t most = 0;
  for (const FormatKernels& f : kernels.formats) most = std::max<int64_t>(most, f.unpacked_bytes);
  return round64(most * (kSegment / kActBlock));
}

const uint8_t* Activations::at(bool is_float, int64_t tile, int64_t k0) const {
  if (is_float) return reinterpret_cast<const uint8_t*>(f32 + tile * f.full * k + k0 * f.width(tile));
  return q8 + (tile * q.full * (k / kActBlock) + k0 / kActBlock * q.width(tile)) * kActBytes;
}

int64_t activation_pieces(const Activations& a) {
  return (a.q.count + a.f.count) * (a.gains == nullptr ? segments(a.k) : 1);
}

namespace {

void fill_segment(const Activations& a, bool is_float, int64_t tile, const float* const* rows, int64_t k0) {
  const Tiling& t = a.tiling(is_float);
  const int64_t k = std::min(kSegment, a.k - k0);
  const float* x[kMaxTile];
  const int tokens = t.tokens(tile);
  for (int j = 0; j < tokens; ++j) x[j] = rows[j] + k0;
  uint8_t* dst = const_cast<uint8_t*>(a.at(is_float, tile, k0));
  if (is_float) {
    a.kernels->interleave(x, tokens, t.width(tile), k, reinterpret_cast<float*>(dst));
  } else {
    a.kernels->quantize(x, tokens, t.width(tile), k, dst);
  }
}

}  // namespace

void fill_activations(const Activations& a, const Rows& rows, int64_t begin, int64_t end) {
  const int64_t n_seg = a.gains == nullptr ? segments(a.k) : 1;
  for (int64_t i = begin; i < end; ++i) {
    const bool is_float = i / n_seg >= a.q.count;
    const Tiling& t = a.tiling(is_float);
    const int64_t tile = is_float ? i / n_seg - a.q.count : i / n_seg;
    const float* x[kMaxTile];
    for (int j = 0; j < t.tokens(tile); ++j) x[j] = rows.at(t.first(tile) + j);
    if (a.gains == nullptr) {
      fill_segment(a, is_float, tile, x, i % n_seg * kSegment);
      continue;
    }
    for (int j = 0; j < t.tokens(tile); ++j) {
      float* y = a.normed + j * a.k;
      a.kernels->rms_norm(x[j], a.gains, a.eps, y, a.k);
      x[j] = y;
    }
    for (int64_t k0 = 0; k0 < a.k; k0 += kSegment) fill_segment(a, is_float, tile, x, k0);
  }
}

void run_piece(const Activations& a, const Piece& p, uint8_t* unpacked) {
  const FormatKernels& fk = a.kernels->formats[p.format];
  const bool is_float = packed_is_float(p.format);
  const Tiling& tiling = a.tiling(is_float);
  const bool unpack = fk.unpack != nullptr && tiling.n >= fk.unpack_from;
  const TileFn* fns = unpack ? fk.tile_unpacked : fk.tile;
  const int step = unpack ? 1 : fk.groups;
  const bool one_tile = p.tile1 - p.tile0 == 1;
  const int64_t all_groups = packed_groups(p.m);

  float* y[kMaxTile];
  const float* residual[kMaxTile];
  Tile t;
  t.w_stride = p.group_bytes;
  t.y = y;

  const auto set_tile = [&](int64_t g, int64_t i) {
    const int64_t row = g * kRowGroup;
    t.groups = static_cast<int>(std::min<int64_t>(step, p.group1 - g));
    t.rows = static_cast<int>(std::min<int64_t>(p.m - row, t.groups * kRowGroup));
    t.width = tiling.width(i);
    t.tokens = tiling.tokens(i);
    for (int j = 0; j < t.tokens; ++j) {
      const int64_t token = tiling.first(i) + j;
      y[j] = p.y.at(token) + row;
      if (p.residual.data) residual[j] = p.residual.at(token) + row;
    }
  };
  const auto packed_at = [&](int64_t g, int64_t k0) {
    return p.w + g * p.group_bytes + p.segment_bytes * (k0 / kSegment);
  };
  const auto one_segment = [&](int64_t g, int64_t i, int64_t k0) {
    t.k = std::min(kSegment, a.k - k0);
    t.first = k0 == 0;
    const bool last = k0 + t.k == a.k;
    t.w = unpack ? unpacked : packed_at(g, k0);
    t.bias = last && p.bias ? p.bias + g * kRowGroup : nullptr;
    t.residual = last && p.residual.data ? residual : nullptr;
    t.x = a.at(is_float, i, k0);
    // One tile: the weights are a stream, what follows comes next. Many: the next row group's are not yet in the cache.
    t.next = nullptr;
    t.next_bytes = 0;
    const bool more = g + step < all_groups;
    if (!is_float && i + 1 == p.tile1 && (more || (one_tile && !last))) {
      t.next = one_tile && !last ? packed_at(g, k0 + kSegment) : packed_at(g + step, one_tile ? 0 : k0);
      t.next_bytes = static_cast<int>(p.segment_bytes * kActBlock / kSegment);
    }
    fns[t.width](t);
  };
  if (unpack) {  // a segment of a row group at a time, for all tiles
    for (int64_t k0 = 0; k0 < a.k; k0 += kSegment) {
      for (int64_t g = p.group0; g < p.group1; ++g) {
        fk.unpack(packed_at(g, k0), std::min(kSegment, a.k - k0), unpacked);
        for (int64_t i = p.tile0; i < p.tile1; ++i) {
          set_tile(g, i);
          one_segment(g, i, k0);
        }
      }
    }
    return;
  }
  // The outputs of a tile stay in the cache from segment to segment: with the segments outside, a prefill of f16 rows
  // of 3072 values took 2.5 % longer.
  for (int64_t g = p.group0; g < p.group1; g += step) {
    for (int64_t i = p.tile0; i < p.tile1; ++i) {
      set_tile(g, i);
      for (int64_t k0 = 0; k0 < a.k; k0 += kSegment) one_segment(g, i, k0);
    }
  }
}

}  // namespace minfer::cpu
