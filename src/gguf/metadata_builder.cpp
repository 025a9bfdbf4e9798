// MetadataBuilder: values encoded as they stand in the file.
#include <algorithm>
#include <cstring>

#include "gguf/encode_bytes.h"
#include "gguf/writer.h"

namespace minfer::gguf {
namespace {

template <typename T>
constexpr ValueType type_of() {
  if constexpr (std::is_same_v<T, bool>) return ValueType::kBool;
  if constexpr (std::is_same_v<T, uint8_t>) return ValueType::kU8;
  if constexpr (std::is_same_v<T, int8_t>) return ValueType::kI8;
  if constexpr (std::is_same_v<T, uint16_t>) return ValueType::kU16;
  if constexpr (std::is_same_v<T, int16_t>) return ValueType::kI16;
  if constexpr (std::is_same_v<T, uint32_t>) return ValueType::kU32;
  if constexpr (std::is_same_v<T, int32_t>) return ValueType::kI32;
  if constexpr (std::is_same_v<T, uint64_t>) return ValueType::kU64;
  if constexpr (std::is_same_v<T, int64_t>) return ValueType::kI64;
  if constexpr (std::is_same_v<T, float>) return ValueType::kF32;
  return ValueType::kF64;
}

void put_array_head(std::vector<std::byte>& out, ValueType type, uint64_t count) {
  put(out, ValueType::kArray);
  put(out, type);
  put(out, count);
}

}  // namespace

std::vector<std::byte>& MetadataBuilder::slot(std::string_view key) {
  for (Entry& e : entries_) {
    if (e.key == key) return e.encoded.clear(), e.encoded;
  }
  return entries_.emplace_back(Entry{std::string(key), {}}).encoded;
}

template <typename T>
void MetadataBuilder::set(std::string_view key, T value) {
  auto& out = slot(key);
  put(out, type_of<T>());
  put(out, value);
}

void MetadataBuilder::set(std::string_view key, std::string_view value) {
  auto& out = slot(key);
  put(out, ValueType::kString);
  put_string(out, value);
}

template <typename T>
void MetadataBuilder::set_array(std::string_view key, std::span<const T> values) {
  auto& out = slot(key);
  put_array_head(out, type_of<T>(), values.size());
  put_bytes(out, values.data(), values.size_bytes());
}

void MetadataBuilder::set_strings(std::string_view key, std::span<const std::string_view> values) {
  auto& out = slot(key);
  put_array_head(out, ValueType::kString, values.size());
  for (const std::string_view s : values) put_string(out, s);
}

void MetadataBuilder::set_strings(std::string_view key, std::span<const std::string> values) {
  auto& out = slot(key);
  put_array_head(out, ValueType::kString, values.size());
  for (const std::string& s : values) put_string(out, s);
}

void MetadataBuilder::set_bools(std::string_view key, std::span<const uint8_t> values) {
  auto& out = slot(key);
  put_array_head(out, ValueType::kBool, values.size());
  for (const uint8_t v : values) put<uint8_t>(out, v != 0);
}

void MetadataBuilder::copy(std::string_view key, const Value& value) {
  auto& out = slot(key);
  if (value.is_array()) {
    put_array_head(out, value.element_type, value.count);
  } else {
    put(out, value.type);
    if (value.type == ValueType::kString) put<uint64_t>(out, value.bytes.size());
  }
  put_bytes(out, value.bytes.data(), value.bytes.size());
}

void MetadataBuilder::copy_all(const Metadata& metadata) {
  for (const Metadata::Entry& e : metadata.entries()) copy(e.key, e.value);
}

bool MetadataBuilder::remove(std::string_view key) {
  return std::erase_if(entries_, [&](const Entry& e) { return e.key == key; }) != 0;
}

bool MetadataBuilder::has(std::string_view key) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
}

#define MINFER_INSTANTIATE(T)                                 \
  template void MetadataBuilder::set<T>(std::string_view, T); \
  template void MetadataBuilder::set_array<T>(std::string_view, std::span<const T>);
MINFER_INSTANTIATE(uint8_t)
MINFER_INSTANTIATE(int8_t)
MINFER_INSTANTIATE(uint16_t)
MINFER_INSTANTIATE(int16_t)
MINFER_INSTANTIATE(uint32_t)
MINFER_INSTANTIATE(int32_t)
MINFER_INSTANTIATE(uint64_t)
MINFER_INSTANTIATE(int64_t)
MINFER_INSTANTIATE(float)
MINFER_INSTANTIATE(double)
#undef MINFER_INSTANTIATE
template void MetadataBuilder::set<bool>(std::string_view, bool);

}  // namespace minfer::gguf
