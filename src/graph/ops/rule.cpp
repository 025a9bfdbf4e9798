// Checks of the shape rules.
#include "graph/ops/rule.h"

#include <cmath>

#include "tensor/kv_layout.h"

namespace minfer {
namespace {

bool is_float(DType t) { return t == DType::kF32 || t == DType::kF16 || t == DType::kBF16; }

std::string dims_text(std::initializer_list<int64_t> dims) {
  std::string s = "[";
  for (int64_t d : dims) {
    if (s.size() > 1) s += ", ";
    s += d == kAnyRows ? "n" : d == kAnyDim ? "d" : std::to_string(d);
  }
  return s + "]";
}

}  // namespace

Status Rule::must(bool cond, const std::string& text) const {
  if (cond) return {};
  return make_error(ErrorCode::kInvalidArgument, "[{}] {}", name_, text);
}

Status Rule::found(size_t i, const char* what, const std::string& expected) const {
  if (!has(i))
    return make_error(ErrorCode::kInvalidArgument, "[{}] input {} ({}) is absent, expected {}", name_, i, what,
                      expected);
  return make_error(ErrorCode::kInvalidArgument, "[{}] input {} ({}): found {} {}, expected {}", name_, i, what,
                    dtype_info(in_[i].dtype).name, in_[i].shape.str(), expected);
}

Status Rule::check(size_t i, const char* what, bool dtype_ok, const char* dtype_text,
                   std::initializer_list<int64_t> dims) const {
  bool ok = dtype_ok && has(i) && shape(i).rank == static_cast<int>(dims.size());
  int d = 0;
  for (int64_t want : dims) {
    if (!ok) break;
    const int64_t got = shape(i)[d++];
    ok = want == kAnyRows ? got >= 0 : want == kAnyDim ? got >= 1 : got == want;
  }
  return ok ? Status() : found(i, what, std::string(dtype_text) + " " + dims_text(dims));
}

Status Rule::want(size_t i, const char* what, DType t, std::initializer_list<int64_t> dims) const {
  return check(i, what, has(i) && in_[i].dtype == t, std::string(dtype_info(t).name).c_str(), dims);
}

Status Rule::want_rows(size_t i, const char* what) const {
  bool ok = has(i) && in_[i].dtype == DType::kF32 && shape(i).rank >= 2 && shape(i).last() >= 1;
  for (int d = 0; ok && d + 1 < shape(i).rank; ++d) ok = shape(i)[d] >= 0;
  return ok ? Status() : found(i, what, "f32 [n, d]");
}

Status Rule::want_weight(size_t i, const char* what, std::initializer_list<int64_t> dims) const {
  MINFER_TRY(check(i, what, has(i) && (is_float(in_[i].dtype) || dtype_info(in_[i].dtype).quantized),
                   "float or block-quantized", dims));
  const DTypeInfo& t = dtype_info(in_[i].dtype);
  return shape(i).last() % t.block_size == 0 ? Status()
                                             : found(i, what, fmt::format("rows of whole blocks of {}", t.block_size));
}

Status Rule::want_region(size_t i, const char* what) const {
  MINFER_TRY(want_kv_heads());
  const bool q8 = has(i) && in_[i].dtype == DType::kQ8_0;
  MINFER_TRY(check(i, what, has(i) && (is_float(in_[i].dtype) || q8), "f32, f16, bf16 or q8_0",
                   {kAnyDim, int64_t{attrs_.n_head_kv} * attrs_.head_dim}));
  if (shape(i)[0] % kKvGroup != 0) return found(i, what, fmt::format("a multiple of {} slots", kKvGroup));
  return must(!q8 || attrs_.head_dim % 32 == 0,
              fmt::format("head_dim {}: a q8_0 region needs a multiple of 32", attrs_.head_dim));
}

Status Rule::want_kv_heads() const {
  return must(attrs_.n_head_kv > 0 && attrs_.head_dim > 0,
              fmt::format("n_head_kv {} and head_dim {} must be positive", attrs_.n_head_kv, attrs_.head_dim));
}

Status Rule::want_attention() const {
  const Attrs& a = attrs_;
  MINFER_TRY(want_kv_heads());
  MINFER_TRY(must(a.n_head > 0 && a.n_head % a.n_head_kv == 0,
                  fmt::format("n_head {} must be a positive multiple of n_head_kv {}", a.n_head, a.n_head_kv)));
  MINFER_TRY(must(a.window >= 0, fmt::format("window {} must not be negative", a.window)));
  MINFER_TRY(must(a.page_size > 0 && a.page_size % kKvGroup == 0,
                  fmt::format("page_size {} must be a positive multiple of {}", a.page_size, kKvGroup)));
  return must(std::isfinite(a.scale) && std::isfinite(a.softcap) && a.softcap >= 0,
              fmt::format("scale {} must be finite, softcap {} finite and not negative", a.scale, a.softcap));
}

Status Rule::want_lookup(size_t first, int64_t n) const {
  MINFER_TRY(want(first, "positions", DType::kI32, {n}));
  MINFER_TRY(want(first + 1, "seqs", DType::kI32, {n}));
  return want(first + 2, "block_table", DType::kI32, {kAnyDim, kAnyDim});
}

Status Rule::want_eps() const {
  return must(std::isfinite(attrs_.eps) && attrs_.eps >= 0,
              fmt::format("eps {} must be finite and not negative", attrs_.eps));
}

Status Rule::want_group(int64_t d) const {
  return must(attrs_.group == 0 || (attrs_.group > 0 && d % attrs_.group == 0),
              fmt::format("group {} must be 0 or divide the row of {}", attrs_.group, d));
}

}  // namespace minfer
