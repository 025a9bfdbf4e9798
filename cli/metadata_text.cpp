// Walks the bytes of GGUF values.
#include "metadata_text.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/stream_decode.h"

namespace minfer::cli {
namespace {

using gguf::Value;
using gguf::ValueType;
using Json = nlohmann::ordered_json;

constexpr size_t kLineBytesMax = 80;    // of a string in the table
constexpr size_t kLineElementsMax = 6;  // of an array in the table

template <typename T>
T take(std::span<const std::byte>& bytes) {
  T v;
  MINFER_CHECK(bytes.size() >= sizeof v);
  std::memcpy(&v, bytes.data(), sizeof v);
  bytes = bytes.subspan(sizeof v);
  return v;
}

std::string_view take_text(std::span<const std::byte>& bytes, uint64_t n) {
  MINFER_CHECK(bytes.size() >= n);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), n);
  bytes = bytes.subspan(n);
  return text;
}

Json number(double v) {
  if (std::isfinite(v)) return v;
  return std::isnan(v) ? "nan" : v < 0 ? "-inf" : "inf";
}

// The shortest decimal that reads back as this float: 1e-05 rather than the double behind it.
Json number(float v) {
  if (!std::isfinite(v)) return number(static_cast<double>(v));
  return std::strtod(fmt::format("{}", v).c_str(), nullptr);
}

// The next element of an array of `type`; strings carry their length.
Json take_element(ValueType type, std::span<const std::byte>& bytes, size_t elements_max);

Json array(ValueType element, uint64_t count, std::span<const std::byte>& bytes, size_t elements_max,
           const std::string& type_name) {
  Json first = Json::array();
  for (uint64_t i = 0; i < count && i < elements_max; ++i) first.push_back(take_element(element, bytes, elements_max));
  if (count <= elements_max) return first;
  return {{"type", type_name}, {"count", count}, {"first", std::move(first)}};
}

Json take_element(ValueType type, std::span<const std::byte>& bytes, size_t elements_max) {
  switch (type) {
    case ValueType::kU8: return take<uint8_t>(bytes);
    case ValueType::kI8: return take<int8_t>(bytes);
    case ValueType::kU16: return take<uint16_t>(bytes);
    case ValueType::kI16: return take<int16_t>(bytes);
    case ValueType::kU32: return take<uint32_t>(bytes);
    case ValueType::kI32: return take<int32_t>(bytes);
    case ValueType::kU64: return take<uint64_t>(bytes);
    case ValueType::kI64: return take<int64_t>(bytes);
    case ValueType::kF32: return number(take<float>(bytes));
    case ValueType::kF64: return number(take<double>(bytes));
    case ValueType::kBool: return take<uint8_t>(bytes) != 0;
    case ValueType::kString: {
      const auto n = take<uint64_t>(bytes);
      return std::string(take_text(bytes, n));
    }
    case ValueType::kArray: return "(array)";  // of arrays: their elements have no place in a table
  }
  return nullptr;
}

// Quoted, on one line, cut at a character after at most `bytes_max` bytes. Control characters, C1 too, are escaped: a
// file must not speak to the terminal.
std::string text_line(std::string_view text, size_t bytes_max) {
  size_t end = std::min(text.size(), bytes_max);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  const std::string shown = utf8_replace(text.substr(0, end));
  std::string out = "\"";
  for (size_t i = 0; i < shown.size(); ++i) {
    const auto c = static_cast<unsigned char>(shown[i]);
    const auto next = i + 1 < shown.size() ? static_cast<unsigned char>(shown[i + 1]) : 0;
    if (c == '\n') {
      out += "\\n";
    } else if (c == '"' || c == '\\') {
      out += fmt::format("\\{}", shown[i]);
    } else if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else if (c == 0xc2 && next < 0xa0) {  // U+0080 to U+009F
      out += fmt::format("\\u00{:02x}", next);
      ++i;
    } else {
      out += shown[i];
    }
  }
  return out + (end < text.size() ? fmt::format("...\" ({} bytes)", text.size()) : "\"");
}

}  // namespace

Json metadata_json(const Value& value, size_t elements_max) {
  auto bytes = value.bytes;
  if (value.type == ValueType::kString) return std::string(take_text(bytes, bytes.size()));
  if (!value.is_array()) return take_element(value.type, bytes, elements_max);
  if (value.element_type == ValueType::kArray) return {{"type", value.type_name()}, {"count", value.count}};
  return array(value.element_type, value.count, bytes, elements_max, value.type_name());
}

std::string metadata_line(const Value& value) {
  if (value.type == ValueType::kString) {
    auto bytes = value.bytes;
    return text_line(take_text(bytes, bytes.size()), kLineBytesMax);
  }
  const Json j = metadata_json(value, kLineElementsMax);
  if (!value.is_array()) return j.is_string() ? j.get<std::string>() : j.dump();
  if (j.is_object() && !j.contains("first")) return fmt::format("[{} arrays]", value.count);
  std::string line;
  for (const auto& e : j.is_object() ? j["first"] : j) {
    line += (line.empty() ? "" : ", ");
    line += e.is_string() ? text_line(e.get_ref<const std::string&>(), 20) : e.dump();
  }
  return "[" + line + (j.is_object() ? fmt::format(", ... {} in all]", value.count) : "]");
}

}  // namespace minfer::cli
