// The table of storage formats: how a row of values is decoded to and encoded from f32, for every DType a weight
// or KV row may have (f32, f16, bf16 and the block formats; the integer types and f64 have no entry).
// Errors:  encode_row refuses values the format cannot hold and names the column; decode_row cannot fail: any
//          bytes are some values (a NaN or infinite scale gives NaN or infinite values).
// Threads: all functions are pure; rows may be converted concurrently.
// Layout:  a row is a run of whole blocks and each block depends on its own values only, so a row may be converted
//          in pieces cut at block boundaries.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "tensor/dtype.h"

namespace minfer::quant {

struct Format {
  DType dtype;

  // Exact definition of the format: every product, difference and sum rounded once to f32, in the order
  // docs/formats.md states. src needs no alignment.
  void (*decode_row)(const void* src,  // [n / block_size] blocks
                     float* dst,       // [n]
                     int64_t n);       // Requires: a multiple of the block size

  // Nearest codes under a searched scale; deterministic, the same bytes on every machine. Unchecked:
  // Requires: find_unstorable(src, n) == -1. src and dst do not overlap.
  void (*encode_blocks)(const float* src,         // [n]
                        const float* importance,  // [n] weight of each column's squared error, finite, >= 0; or null
                        void* dst,                // [n / block_size] blocks
                        int64_t n);               // Requires: a multiple of the block size

  // Largest magnitude that can be stored without a scale (or, for f16 and bf16, the value) becoming infinite.
  float max_abs;

  // f32, f16 and bf16 store NaN and infinity as they are; a block with one such value would lose all the others.
  bool keeps_nonfinite;

  // Index of the first value that cannot be stored, or -1.
  int64_t find_unstorable(const float* src,  // [n]
                          int64_t n) const;

  // Says why `value` cannot be stored: "[quant] <where>: value inf cannot be stored as q4_k, expected ...".
  Error unstorable(float value, std::string_view where) const;

  // The checked way to encode; an error names the column and leaves dst untouched.
  Status encode_row(const float* src,                          // [n]
                    void* dst,                                 // [n / block_size] blocks
                    int64_t n,                                 // Requires: a multiple of the block size
                    const float* importance = nullptr) const;  // [n] or null
};

// Null for types without a row codec: i8, i16, i32, i64, f64.
const Format* find_format(DType t);

// Requires: find_format(t) is not null.
const Format& format(DType t);

}  // namespace minfer::quant
