// The table of storage formats: how a row of values is decoded to and encoded from f32, for every DType a weight
// or KV row may have (f32, f16, bf16 and the block formats; the integer types and f64 have no entry).
// Errors:  encode_row refuses values it cannot store and names the column; decode_row cannot fail: any bytes are
//          some values (a NaN or infinite scale gives NaN or infinite values).
// Threads: all functions are pure; rows may be converted concurrently.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "tensor/dtype.h"

namespace minfer::quant {

struct Format {
  DType dtype;

  // Exact definition of the format: every product, difference and sum rounded once to f32, in the order
  // docs/formats.md states. src and dst need no alignment beyond dst's own type.
  void (*decode_row)(const void* src,  // [n / block_size] blocks
                     float* dst,       // [n]
                     int64_t n);       // Requires: a multiple of the block size

  // Nearest codes under a searched scale; deterministic. f32 keeps every bit; f16 and bf16 keep NaN and infinity
  // and round to nearest even (f16 above 65520 becomes infinity, as IEEE says). A block format refuses a value that is not finite, or
  // so large that its f16 scale would overflow, with an error naming the column; dst is then unspecified.
  Status (*encode_row)(const float* src,  // [n]
                       void* dst,         // [n / block_size] blocks
                       int64_t n);        // Requires: a multiple of the block size
};

// Null for types without a row codec: i8, i16, i32, i64, f64.
const Format* find_format(DType t);

// Requires: find_format(t) is not null.
const Format& format(DType t);

}  // namespace minfer::quant
