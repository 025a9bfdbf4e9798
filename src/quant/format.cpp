// The table of formats and the checked row encoder.
#include "quant/format.h"

#include <cmath>
#include <limits>

#include "quant/codec.h"

namespace minfer::quant {
namespace {

constexpr float kF16Max = 65504.0f;

// f16 and bf16: the largest f32 that does not round to infinity. 65520 and 2^128 - 2^119 are the ties, which round up.
constexpr float kF16Limit = 0x1.ffdffep15f;
constexpr float kBF16Limit = 0x1.fefffep127f;
constexpr float kNoLimit = std::numeric_limits<float>::max();

// max_abs of a block format: the largest f16 scale times the largest level that both signs reach (times the largest
// sub-scale); with a minimum, what the minimum alone reaches, as a row may be all equal.
constexpr Format kFormats[] = {
    {DType::kF32, decode_f32, encode_f32, kNoLimit, true},
    {DType::kF16, decode_f16, encode_f16, kF16Limit, true},
    {DType::kBF16, decode_bf16, encode_bf16, kBF16Limit, true},
    {DType::kQ4_0, decode_q4_0, encode_q4_0, kF16Max * 7, false},
    {DType::kQ4_1, decode_q4_1, encode_q4_1, kF16Max, false},
    {DType::kQ5_0, decode_q5_0, encode_q5_0, kF16Max * 15, false},
    {DType::kQ5_1, decode_q5_1, encode_q5_1, kF16Max, false},
    {DType::kQ8_0, decode_q8_0, encode_q8_0, kF16Max * 127, false},
    {DType::kQ2_K, decode_q2_k, encode_q2_k, kF16Max * 15, false},
    {DType::kQ3_K, decode_q3_k, encode_q3_k, kF16Max * 31 * 3, false},
    {DType::kQ4_K, decode_q4_k, encode_q4_k, kF16Max * 63, false},
    {DType::kQ5_K, decode_q5_k, encode_q5_k, kF16Max * 63, false},
    {DType::kQ6_K, decode_q6_k, encode_q6_k, kF16Max * 127 * 31, false},
    {DType::kIQ4_NL, decode_iq4_nl, encode_iq4_nl, kF16Max * 113, false},
    {DType::kIQ4_XS, decode_iq4_xs, encode_iq4_xs, kF16Max * 31 * 113, false},
    {DType::kMXFP4, decode_mxfp4, encode_mxfp4, 0x1.8p127f, false},
};

constexpr bool in_dtype_order() {
  int i = 0;
  for (const Format& f : kFormats) {
    if (static_cast<int>(f.dtype) != i++) return false;
  }
  return true;
}
static_assert(in_dtype_order(), "the table is indexed by DType");

}  // namespace

const Format* find_format(DType t) {
  const auto i = static_cast<size_t>(t);
  return i < std::size(kFormats) ? &kFormats[i] : nullptr;
}

const Format& format(DType t) {
  const Format* f = find_format(t);
  MINFER_CHECK(f != nullptr);
  return *f;
}

int64_t Format::find_unstorable(const float* src, int64_t n) const {
  for (int64_t i = 0; i < n; ++i) {
    if (std::fabs(src[i]) <= max_abs) continue;
    if (keeps_nonfinite && !std::isfinite(src[i])) continue;
    return i;
  }
  return -1;
}

Error Format::unstorable(float value, std::string_view where) const {
  const std::string_view name = dtype_info(dtype).name;
  if (!std::isfinite(value)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "[quant] {}: value {} cannot be stored as {}, expected a finite value", where, value, name);
  }
  return make_error(ErrorCode::kInvalidArgument, "[quant] {}: value {} is too large for {}, expected at most {}", where,
                    value, name, max_abs);
}

Status Format::encode_row(const float* src, void* dst, int64_t n, const float* importance) const {
  MINFER_DCHECK(n % dtype_info(dtype).block_size == 0);
  const int64_t bad = find_unstorable(src, n);
  if (bad >= 0) return unstorable(src[bad], fmt::format("column {}", bad));
  encode_blocks(src, importance, dst, n);
  return {};
}

}  // namespace minfer::quant
