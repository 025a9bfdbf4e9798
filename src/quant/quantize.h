// Converts whole tensors between storage formats through f32, on as many threads as the caller lends.
// Errors:  a value that the target cannot hold is named by row and column (always the first one, whatever the number of
//          threads); then dst holds part of the result.
// Threads: reentrant. The work is cut into independent pieces, so the bytes do not depend on how they are shared out.
#pragma once

#include <cstdint>
#include <functional>

#include "base/error.h"
#include "tensor/dtype.h"

namespace minfer::quant {

// Calls body(begin, end) for ranges that together cover [0, n) once each, on any threads, and returns when all are
// done. With a ThreadPool: pool.run([&](Worker& w) { auto r = w.share(n); body(r.begin, r.end); }).
using ParallelFor = std::function<Status(int64_t n, const std::function<void(int64_t begin, int64_t end)>& body)>;

struct ConvertOptions {
  ParallelFor parallel_for;           // (optional, default: the calling thread alone)
  const float* importance = nullptr;  // [cols] weight of each column's squared error (optional, default: all equal)
};

// Same type: a copy of the bytes. Otherwise decode to f32 and encode. Fails with kInvalidArgument when a type has no
// row codec, cols is not a multiple of a block size, or an importance is negative or not finite; with kOutOfRange when
// the sizes overflow. Needs no memory beyond a few KiB of stack per thread.
Status convert_rows(DType from,
                    const void* src,  // [rows, cols] of `from`, rows without gaps
                    DType to,
                    void* dst,  // [rows, cols] of `to`; does not overlap src
                    int64_t rows, int64_t cols, const ConvertOptions& options = {});

}  // namespace minfer::quant
