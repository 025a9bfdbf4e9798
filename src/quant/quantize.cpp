// Tensor conversion in pieces of at most kPiece values of one row.
#include "quant/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "quant/format.h"

namespace minfer::quant {
namespace {

// Values per piece: a multiple of every block size; 16 KiB of f32, so the decoded piece stays in the first-level cache.
constexpr int64_t kPiece = 4096;

Status check_type(DType t, int64_t cols) {
  const DTypeInfo& info = dtype_info(t);
  if (find_format(t) == nullptr) {
    return make_error(ErrorCode::kInvalidArgument,
                      "[quant] type {} cannot be converted, expected f32, f16, bf16 or a block format", info.name);
  }
  if (cols % info.block_size != 0) {
    return make_error(ErrorCode::kInvalidArgument, "[quant] row of {} values: expected a multiple of {} for {}", cols,
                      info.block_size, info.name);
  }
  return {};
}

Status check_size(DType t, int64_t rows, int64_t cols) {
  const DTypeInfo& info = dtype_info(t);
  int64_t row_bytes = 0, bytes = 0;
  if (__builtin_mul_overflow(cols / info.block_size, int64_t{info.block_bytes}, &row_bytes) ||
      __builtin_mul_overflow(row_bytes, rows, &bytes)) {
    return make_error(ErrorCode::kOutOfRange, "[quant] [{}, {}] of {}: its size in bytes exceeds 2^63", rows, cols,
                      info.name);
  }
  return {};
}

// The lowest piece that failed, and why.
struct FirstFault {
  std::mutex mutex;
  int64_t piece = -1;
  Error error;

  void report(int64_t at, Error e) {
    const std::lock_guard lock(mutex);
    if (piece >= 0 && piece <= at) return;
    piece = at;
    error = std::move(e);
  }
};

}  // namespace

Status convert_rows(DType from, const void* src, DType to, void* dst, int64_t rows, int64_t cols,
                    const ConvertOptions& options) {
  if (rows < 0 || cols < 0) {
    return make_error(ErrorCode::kInvalidArgument, "[quant] [{}, {}]: expected sizes of at least 0", rows, cols);
  }
  MINFER_TRY(check_type(from, cols));
  MINFER_TRY(check_type(to, cols));
  MINFER_TRY(check_size(DType::kF32, rows, cols));
  MINFER_TRY(check_size(from, rows, cols));
  MINFER_TRY(check_size(to, rows, cols));
  for (int64_t c = 0; options.importance != nullptr && c < cols; ++c) {
    if (!(options.importance[c] >= 0) || !std::isfinite(options.importance[c])) {
      return make_error(ErrorCode::kInvalidArgument,
                        "[quant] importance of column {} is {}, expected a finite value of at least 0", c,
                        options.importance[c]);
    }
  }
  if (rows == 0 || cols == 0) return {};

  const Format& decoder = format(from);
  const Format& encoder = format(to);
  const int64_t src_row = dtype_row_bytes(from, cols), dst_row = dtype_row_bytes(to, cols);
  const int64_t pieces_per_row = (cols - 1) / kPiece + 1;
  FirstFault fault;

  const auto body = [&](int64_t begin, int64_t end) {
    alignas(64) float values[kPiece];
    for (int64_t p = begin; p < end; ++p) {
      const int64_t row = p / pieces_per_row, col = p % pieces_per_row * kPiece;
      const int64_t n = std::min(kPiece, cols - col);
      const auto* in = static_cast<const char*>(src) + row * src_row + dtype_row_bytes(from, col);
      auto* out = static_cast<char*>(dst) + row * dst_row + dtype_row_bytes(to, col);
      if (from == to) {
        std::memcpy(out, in, static_cast<size_t>(dtype_row_bytes(to, n)));
        continue;
      }
      decoder.decode_row(in, values, n);
      const float* importance = options.importance ? options.importance + col : nullptr;
      const int64_t bad = encoder.find_unstorable(values, n);
      if (bad >= 0) {
        return fault.report(p, encoder.unstorable(values[bad], fmt::format("row {}, column {}", row, col + bad)));
      }
      encoder.encode_blocks(values, importance, out, n);
    }
  };
  const int64_t pieces = rows * pieces_per_row;  // <= rows * cols
  if (options.parallel_for) {
    MINFER_TRY(options.parallel_for(pieces, body));
  } else {
    body(0, pieces);
  }
  if (fault.piece >= 0) return std::move(fault.error);
  return {};
}

}  // namespace minfer::quant
