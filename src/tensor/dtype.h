// Data types of tensors: plain numbers and the block formats of GGUF.
// Layout: a block format stores `block_size` consecutive values of a row in `block_bytes` bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace minfer {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  kI8,
  kI16,
  kI32,
  kI64,
  kF64,
};
inline constexpr int kDTypeCount = 21;

struct DTypeInfo {
  std::string_view name;  // "q4_k"; upper-cased in messages about GGUF
  int32_t block_size;     // values per block; 1 for plain numbers
  int32_t block_bytes;    // bytes per block
  bool quantized;         // a block format
};

const DTypeInfo& dtype_info(DType t);
std::optional<DType> dtype_from_name(std::string_view name);  // any case: "Q4_K", "q4_k"

// Bytes of a row of n values. Requires: n a multiple of the block size, n * block_bytes < 2^63.
int64_t dtype_row_bytes(DType t, int64_t n);

}  // namespace minfer
