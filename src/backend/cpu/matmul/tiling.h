// How a matmul's tokens are cut into tiles, where the activations of a tile lie in the scratch, and the calls of the
// tile kernels over one piece of a weight.
// Threads: plain values and pure functions; prepare() is called by all workers.
#pragma once

#include <cstdint>

#include "backend/cpu/matmul_kernels.h"
#include "backend/cpu/pack.h"
#include "backend/kernel.h"

namespace minfer::cpu {

// n tokens as full tiles of the widest width, then one of the smallest width that takes the rest.
struct Tiling {
  int64_t n = 0;
  int64_t count = 0;  // tiles
  int full = 1;       // width of every tile but the last
  int last = 1;       // width of the last
  int64_t first(int64_t tile) const { return tile * full; }
  int width(int64_t tile) const { return tile + 1 == count ? last : full; }
  int tokens(int64_t tile) const { return static_cast<int>(tile + 1 == count ? n - tile * full : full); }
};
Tiling make_tiling(const int* widths, int64_t n);  // widths: as in MatmulKernels

// The rows of an f32 tensor that the tokens 0, 1, ... of a matmul use: all in order, or those an index names.
struct Rows {
  std::byte* data = nullptr;  // null: absent
  int64_t row_bytes = 0;
  const int32_t* index = nullptr;  // [n] or null
  int32_t divisor = 1;             // rows shared by so many entries of the index
  float* at(int64_t i) const { return reinterpret_cast<float*>(data + (index ? index[i] / divisor : i) * row_bytes); }
};

// Activations of n rows of k values in the forms the weights need. Tiles lie one after the other; tile i of the
// quantized form starts at i * full * (k / 32) * kActBytes, of the float form at i * full * k floats.
struct Activations {
  const MatmulKernels* kernels = nullptr;
  int64_t k = 0;
  Tiling q, f;  // n = 0 where the form is not needed
  // Where rows are normalised first: the gains [k], else null, and this worker's scratch for the rows of a tile.
  const float* gains = nullptr;
  float eps = 0.0f;
  float* normed = nullptr;  // [kMaxTile][k]; one row and no quantized form: it stays there as the float form
  uint8_t* q8 = nullptr;    // quantized form
  float* f32 = nullptr;     // float form

  const Tiling& tiling(bool is_float) const { return is_float ? f : q; }
  // Tile `tile` at value `k0` of k (a multiple of 32 for the quantized form).
  const uint8_t* at(bool is_float, int64_t tile, int64_t k0) const;
};

// Bytes of each form for n rows, multiples of 64.
int64_t q8_bytes(const MatmulKernels& kernels, int64_t n, int64_t k);
int64_t f32_bytes(const MatmulKernels& kernels, int64_t n, int64_t k);

// Fills both forms, the tiles split into pieces of one segment each (whole tiles where rows are normalised), of which
// this call does [begin, end).
int64_t activation_pieces(const Activations& a);
void fill_activations(const Activations& a, const Rows& x, int64_t begin, int64_t end);

// One piece of work: row groups [group0, group1) of a weight times tiles [tile0, tile1).
struct Piece {
  PackedFormat format;
  const uint8_t* w;       // packed rows of the whole matrix
  int64_t group_bytes;    // bytes of a row group
  int64_t segment_bytes;  // bytes of kSegment values of it (block sizes divide kSegment)
  int64_t m;              // rows of the matrix
  int64_t group0, group1;
  int64_t tile0, tile1;
  Rows y;             // of m values, one per token
  const float* bias;  // [m] or null
  Rows residual;      // of m values, or absent
};
// `unpacked`: this worker's scratch of unpack_bytes(kernels).
void run_piece(const Activations& a, const Piece& p, uint8_t* unpacked);
int64_t unpack_bytes(const MatmulKernels& kernels);

}  // namespace minfer::cpu
