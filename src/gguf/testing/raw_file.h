// RawFile: a GGUF file as plain fields, every one of which a test may set to nonsense before encoding it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gguf/types.h"

namespace minfer::gguf::testing {

struct RawKey {
  std::string name;
  uint32_t type = 0;
  std::vector<std::byte> value;
  std::optional<uint64_t> name_bytes;  // a lie about the name's length
};

struct RawTensor {
  std::string name;
  std::vector<uint64_t> dims;  // as in the file: innermost first
  uint32_t type = 0;
  uint64_t offset = 0;
  std::optional<uint64_t> name_bytes;
  std::optional<uint32_t> n_dims;
};

struct RawFile {
  uint32_t magic = kMagic;
  uint32_t version = kVersionMax;
  std::optional<uint64_t> n_tensors, n_keys;
  std::vector<RawKey> keys;
  std::vector<RawTensor> tensors;
  uint64_t alignment = kAlignmentDefault;  // of the padding before the data
  std::vector<std::byte> data;
  std::optional<size_t> cut_to;  // bytes of the file to keep

  std::vector<std::byte> encode() const;
  RawKey& key(const std::string& name);
  RawTensor& tensor(const std::string& name);
};

// The little model that the recipes spoil: 8 keys (vocabulary of four, a bool, numbers), 4 tensors (F32, F16, Q8_0).
RawFile base_file();
// The same, made by MetadataBuilder and Writer.
std::vector<std::byte> base_file_by_writer();

// Bytes of values as they stand in a file.
std::vector<std::byte> u32_bytes(uint32_t v);
std::vector<std::byte> string_bytes(std::string_view s, std::optional<uint64_t> length = {});
std::vector<std::byte> array_bytes(uint32_t type, uint64_t count, const std::vector<std::byte>& elements);

}  // namespace minfer::gguf::testing
