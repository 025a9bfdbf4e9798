// Tables of GGUF value types and ggml tensor types.
#include "gguf/types.h"

#include <array>

namespace minfer::gguf {
namespace {

struct ValueTypeInfo {
  std::string_view name;
  uint8_t bytes;
};

constexpr std::array<ValueTypeInfo, kValueTypeCount> kValueTypes = {{
    {"UINT8", 1},
    {"INT8", 1},
    {"UINT16", 2},
    {"INT16", 2},
    {"UINT32", 4},
    {"INT32", 4},
    {"FLOAT32", 4},
    {"BOOL", 1},
    {"STRING", 0},
    {"ARRAY", 0},
    {"UINT64", 8},
    {"INT64", 8},
    {"FLOAT64", 8},
}};

enum class Support : uint8_t { kYes, kNo, kRemoved };

struct TensorType {
  std::string_view name;
  Support support;
  DType dtype;  // where supported
};

constexpr TensorType yes(std::string_view name, DType t) { return {name, Support::kYes, t}; }
constexpr TensorType no(std::string_view name) { return {name, Support::kNo, DType::kF32}; }
constexpr TensorType removed(std::string_view name) { return {name, Support::kRemoved, DType::kF32}; }

// The index is the id in the file.
constexpr std::array kTensorTypes = {
    /*  0 */ yes("F32", DType::kF32),
    yes("F16", DType::kF16),
    yes("Q4_0", DType::kQ4_0),
    yes("Q4_1", DType::kQ4_1),
    /*  4 */ removed("Q4_2"),
    removed("Q4_3"),
    yes("Q5_0", DType::kQ5_0),
    yes("Q5_1", DType::kQ5_1),
    /*  8 */ yes("Q8_0", DType::kQ8_0),
    no("Q8_1"),
    yes("Q2_K", DType::kQ2_K),
    yes("Q3_K", DType::kQ3_K),
    /* 12 */ yes("Q4_K", DType::kQ4_K),
    yes("Q5_K", DType::kQ5_K),
    yes("Q6_K", DType::kQ6_K),
    no("Q8_K"),
    /* 16 */ no("IQ2_XXS"),
    no("IQ2_XS"),
    no("IQ3_XXS"),
    no("IQ1_S"),
    /* 20 */ yes("IQ4_NL", DType::kIQ4_NL),
    no("IQ3_S"),
    no("IQ2_S"),
    yes("IQ4_XS", DType::kIQ4_XS),
    /* 24 */ yes("I8", DType::kI8),
    yes("I16", DType::kI16),
    yes("I32", DType::kI32),
    yes("I64", DType::kI64),
    /* 28 */ yes("F64", DType::kF64),
    no("IQ1_M"),
    yes("BF16", DType::kBF16),
    removed("Q4_0_4_4"),
    /* 32 */ removed("Q4_0_4_8"),
    removed("Q4_0_8_8"),
    no("TQ1_0"),
    no("TQ2_0"),
    /* 36 */ removed("IQ4_NL_4_4"),
    removed("IQ4_NL_4_8"),
    removed("IQ4_NL_8_8"),
    yes("MXFP4", DType::kMXFP4),
    /* 40 */ no("NVFP4"),
    no("Q1_0"),
    no("Q2_0"),
};

std::string supported_names() {
  std::string s;
  for (const TensorType& t : kTensorTypes) {
    if (t.support != Support::kYes) continue;
    if (!s.empty()) s += ", ";
    s += t.name;
  }
  return s;
}

}  // namespace

std::string_view value_type_name(ValueType t) { return kValueTypes[static_cast<size_t>(t)].name; }
size_t value_type_bytes(ValueType t) { return kValueTypes[static_cast<size_t>(t)].bytes; }

bool value_type_is_integer(ValueType t) { return t <= ValueType::kI32 || t == ValueType::kU64 || t == ValueType::kI64; }

Result<DType> dtype_from_ggml(uint32_t id) {
  if (id >= kTensorTypes.size()) {
    return make_error(ErrorCode::kUnsupported, "tensor type {} is unknown, expected one of {}", id, supported_names());
  }
  const TensorType& t = kTensorTypes[id];
  if (t.support == Support::kYes) return t.dtype;
  return make_error(ErrorCode::kUnsupported, "tensor type {} ({}) {}, expected one of {}", id, t.name,
                    t.support == Support::kRemoved ? "was removed from the format" : "is not supported",
                    supported_names());
}

uint32_t dtype_to_ggml(DType t) {
  for (uint32_t id = 0; id < kTensorTypes.size(); ++id) {
    if (kTensorTypes[id].support == Support::kYes && kTensorTypes[id].dtype == t) return id;
  }
  MINFER_CHECK(false && "a DType without a ggml type id");
  return 0;
}

std::string ggml_type_name(uint32_t id) {
  return std::string(id < kTensorTypes.size() ? kTensorTypes[id].name : std::string_view("unknown"));
}

std::string printable(std::string_view text, size_t bytes_max) {
  std::string s = "'";
  for (size_t i = 0; i < text.size() && i < bytes_max; ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c >= 0x7f || c == '\\') {
      s += fmt::format("\\x{:02x}", c);
    } else {
      s += static_cast<char>(c);
    }
  }
  if (text.size() > bytes_max)
    s += fmt::format("...' ({} bytes)", text.size());
  else
    s += '\'';
  return s;
}

}  // namespace minfer::gguf
