// Tiles of the softmax: KV positions cut by absolute position.
// Layout: a row of attn_softmax is n_kv weights, then (maximum, sum) of each of the n_kv / 256 tiles.
#pragma once

#include <algorithm>
#include <cstdint>

namespace minfer::ref {

inline constexpr int64_t kTile = 256;  // positions of a tile
inline constexpr int64_t kLanes = 16;  // partial sums of a tile's weights: one 512-bit vector

// Length of a row of attn_softmax / n_kv of a row of that length.
inline int64_t softmax_width(int64_t n_kv) { return n_kv + 2 * (n_kv / kTile); }
inline int64_t softmax_n_kv(int64_t width) { return width / (kTile + 2) * kTile; }

// The visible part [begin, end) of a tile; empty when begin >= end.
struct TileRange {
  int64_t begin, end;
  TileRange(int64_t tile, int64_t lo, int64_t pos)
      : begin(std::max(tile * kTile, lo)), end(std::min((tile + 1) * kTile, pos + 1)) {}
  bool empty() const { return begin >= end; }
};

// The larger of two; a NaN wins.
inline float max_nan(float a, float b) { return b > a || b != b ? b : a; }

}  // namespace minfer::ref
