// A row of block-quantized weights as integer codes with their scales: what the quantized matmul computes on.
// Layout: one CodeBlock per 32 values, in order of k; a K-quant super-block gives eight.
// Source: docs/numerics.md, table of "Matmul with block-quantized weights"; quant/blocks.h for the bytes.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace minfer::ref {

// Which step a format takes per block, with D the dot product of codes, D0 and D1 those of its halves, and d, s, h0, h1
// of the activations.
enum class CodeStep : uint8_t {
  kScale,      // acc = fma(f(D), a*d, acc)
  kScaleMin,   // the same, then acc = fma(b, s, acc)
  kHalves,     // acc = fma(f(sc0*D0 + sc1*D1), a*d, acc)
  kHalvesMin,  // the same, then acc = fma(-f(mn0*h0 + mn1*h1), b*d, acc)
};

struct CodeBlock {
  int8_t q[32];
  float a;           // scale (with the sub-scale where that product is exact)
  float b;           // kScaleMin: what s is multiplied by (negative minimum of K-quants); kHalvesMin: dmin
  int32_t sc0, sc1;  // kHalves, kHalvesMin
  int32_t mn0, mn1;  // kHalvesMin
};

// Requires: dtype_info(t).quantized.
CodeStep code_step(DType t);

// Requires: dtype_info(t).quantized, k a multiple of its block size.
void decode_codes(DType t,
                  const void* row,  // k values of type t
                  int64_t k,
                  CodeBlock* out);  // [k / 32]

}  // namespace minfer::ref
