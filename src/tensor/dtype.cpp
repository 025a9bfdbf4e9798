// The table of data types.
#include "tensor/dtype.h"

#include "base/error.h"

namespace minfer {
namespace {

constexpr DTypeInfo kInfo[kDTypeCount] = {
    {"f32", 1, 4, false},     {"f16", 1, 2, false},     {"bf16", 1, 2, false},      {"q4_0", 32, 18, true},
    {"q4_1", 32, 20, true},   {"q5_0", 32, 22, true},   {"q5_1", 32, 24, true},     {"q8_0", 32, 34, true},
    {"q2_k", 256, 84, true},  {"q3_k", 256, 110, true}, {"q4_k", 256, 144, true},   {"q5_k", 256, 176, true},
    {"q6_k", 256, 210, true}, {"iq4_nl", 32, 18, true}, {"iq4_xs", 256, 136, true}, {"mxfp4", 32, 17, true},
    {"i8", 1, 1, false},      {"i16", 1, 2, false},     {"i32", 1, 4, false},       {"i64", 1, 8, false},
    {"f64", 1, 8, false},
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

const DTypeInfo& dtype_info(DType t) { return kInfo[static_cast<int>(t)]; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (name.size() != kInfo[i].name.size()) continue;
    bool same = true;
    for (size_t j = 0; j < name.size(); ++j) same = same && lower(name[j]) == kInfo[i].name[j];
    if (same) return static_cast<DType>(i);
  }
  return std::nullopt;
}

int64_t dtype_row_bytes(DType t, int64_t n) {
  const DTypeInfo& info = dtype_info(t);
  MINFER_DCHECK(n % info.block_size == 0);
  return n / info.block_size * info.block_bytes;
}

}  // namespace minfer
