// The numbers GGUF uses for value types and tensor types, and their names.
// Source: the GGUF format description (versions 2 and 3) and the ggml list of tensor types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tensor/dtype.h"

namespace minfer::gguf {

inline constexpr uint32_t kMagic = 0x46554747;  // the bytes "GGUF", read as little endian
inline constexpr uint32_t kVersionMin = 2;      // version 1 had 32-bit counts
inline constexpr uint32_t kVersionMax = 3;
inline constexpr uint64_t kAlignmentDefault = 32;    // where general.alignment is absent
inline constexpr uint64_t kAlignmentMin = 8;         // the format: a multiple of 8
inline constexpr uint64_t kKeyBytesMax = 65535;      // the format: at most 2^16 - 1
inline constexpr uint64_t kTensorNameBytesMax = 64;  // the format: at most 64
inline constexpr int kArrayDepthMax = 4;             // arrays of arrays: read this deep, then refused

enum class ValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
inline constexpr uint32_t kValueTypeCount = 13;

std::string_view value_type_name(ValueType t);  // "UINT32", "STRING", ...
size_t value_type_bytes(ValueType t);           // of one value; 0 for STRING and ARRAY, whose size varies
bool value_type_is_integer(ValueType t);        // U8..I64; not BOOL

// The tensor type behind a ggml type id. Errors: an id that is unknown, removed from the format or not supported by
// minfer; the message holds the id and its name ("19 (IQ1_S)") and lists what is supported.
Result<DType> dtype_from_ggml(uint32_t id);
uint32_t dtype_to_ggml(DType t);
std::string ggml_type_name(uint32_t id);  // "Q4_K"; "unknown" where no type ever had the id

// `text` for an error message: quoted as it is where printable, other bytes as \xNN, cut after `bytes_max` bytes.
std::string printable(std::string_view text, size_t bytes_max = 100);

}  // namespace minfer::gguf
