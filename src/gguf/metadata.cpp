// Typed reads of GGUF values. Numbers in a file need not be aligned: all go through memcpy.
#include "gguf/metadata.h"

#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

namespace minfer::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF values are read in the machine's own byte order");

template <typename T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

template <typename T>
T load(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// Calls f with the number of type `type` at p. Requires: a numeric type other than BOOL.
template <typename F>
auto visit_number(ValueType type, const std::byte* p, F&& f) {
  switch (type) {
    case ValueType::kU8: return f(load<uint8_t>(p));
    case ValueType::kI8: return f(load<int8_t>(p));
    case ValueType::kU16: return f(load<uint16_t>(p));
    case ValueType::kI16: return f(load<int16_t>(p));
    case ValueType::kU32: return f(load<uint32_t>(p));
    case ValueType::kI32: return f(load<int32_t>(p));
    case ValueType::kU64: return f(load<uint64_t>(p));
    case ValueType::kI64: return f(load<int64_t>(p));
    case ValueType::kF32: return f(load<float>(p));
    case ValueType::kF64: return f(load<double>(p));
    default: break;
  }
  MINFER_CHECK(false && "visit_number of a value that is no number");
  return f(uint8_t{0});
}

template <typename T>
std::string expected_name() {
  if constexpr (std::same_as<T, bool>) {
    return "BOOL";
  } else if constexpr (Integer<T>) {
    return fmt::format("an integer from {} to {}", std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  } else {
    return "FLOAT32 or FLOAT64";
  }
}

// Can a value of this type be read as T at all?
template <typename T>
bool type_fits(ValueType type) {
  if constexpr (Integer<T>) return value_type_is_integer(type);
  return type == ValueType::kF32 || type == ValueType::kF64;
}

// The number at p as T; nullopt where it does not fit. Requires: type_fits<T>(type).
template <typename T>
std::optional<T> convert(ValueType type, const std::byte* p) {
  return visit_number(type, p, [](auto v) -> std::optional<T> {
    using V = decltype(v);
    if constexpr (Integer<T> && Integer<V>) {
      if (!std::in_range<T>(v)) return std::nullopt;
      return static_cast<T>(v);
    } else if constexpr (std::floating_point<T> && std::floating_point<V>) {
      if (std::isfinite(v) && std::abs(static_cast<double>(v)) > static_cast<double>(std::numeric_limits<T>::max())) {
        return std::nullopt;
      }
      return static_cast<T>(v);
    } else {
      return std::nullopt;
    }
  });
}

std::string number_text(ValueType type, const std::byte* p) {
  return visit_number(type, p, [](auto v) { return fmt::format("{}", v); });
}

}  // namespace

std::string Value::type_name() const {
  if (!is_array()) return std::string(value_type_name(type));
  return fmt::format("ARRAY of {} ({} elements)", value_type_name(element_type), count);
}

const Value* Metadata::find(std::string_view key) const {
  const auto it = index_.find(key);
  return it == index_.end() ? nullptr : &entries_[it->second].value;
}

bool Metadata::add(std::string_view key, const Value& value) {
  if (!index_.emplace(key, entries_.size()).second) return false;
  entries_.push_back({key, value});
  return true;
}

Error Metadata::missing(std::string_view key) const {
  return make_error(ErrorCode::kNotFound, "[gguf] {}: key {} is missing", source_, printable(key));
}

Error Metadata::wrong_type(std::string_view key, const Value& found, std::string_view expected) const {
  return make_error(ErrorCode::kCorrupt, "[gguf] {}: key {}: found {}, expected {}", source_, printable(key),
                    found.type_name(), expected);
}

template <typename T>
Result<T> Metadata::get(std::string_view key) const {
  const Value* v = find(key);
  if (v == nullptr) return missing(key);
  if constexpr (std::same_as<T, std::string_view> || std::same_as<T, std::string>) {
    if (v->type != ValueType::kString) return wrong_type(key, *v, "STRING");
    return T(reinterpret_cast<const char*>(v->bytes.data()), v->bytes.size());
  } else if constexpr (std::same_as<T, bool>) {
    if (v->type != ValueType::kBool) return wrong_type(key, *v, "BOOL");
    return load<uint8_t>(v->bytes.data()) != 0;
  } else {
    if (!type_fits<T>(v->type)) return wrong_type(key, *v, expected_name<T>());
    const std::optional<T> n = convert<T>(v->type, v->bytes.data());
    if (n) return *n;
    return make_error(ErrorCode::kCorrupt, "[gguf] {}: key {}: found {} ({}), expected {}", source_, printable(key),
                      number_text(v->type, v->bytes.data()), v->type_name(), expected_name<T>());
  }
}

template <typename T>
Result<std::vector<T>> Metadata::numbers(std::string_view key) const {
  const Value* v = find(key);
  if (v == nullptr) return missing(key);
  if (!v->is_array() || !type_fits<T>(v->element_type)) {
    return wrong_type(key, *v, fmt::format("ARRAY of {}", expected_name<T>()));
  }
  // Bounded: the elements lie in the file and one takes at least an eighth of sizeof(T) there.
  std::vector<T> out(v->count);
  const size_t step = value_type_bytes(v->element_type);
  for (size_t i = 0; i < out.size(); ++i) {
    const std::byte* p = v->bytes.data() + i * step;
    const std::optional<T> n = convert<T>(v->element_type, p);
    if (!n) {
      return make_error(ErrorCode::kCorrupt, "[gguf] {}: key {}: element {}: found {} ({}), expected {}", source_,
                        printable(key), i, number_text(v->element_type, p), value_type_name(v->element_type),
                        expected_name<T>());
    }
    out[i] = *n;
  }
  return out;
}

Result<std::vector<uint8_t>> Metadata::bools(std::string_view key) const {
  const Value* v = find(key);
  if (v == nullptr) return missing(key);
  if (!v->is_array() || v->element_type != ValueType::kBool) return wrong_type(key, *v, "ARRAY of BOOL");
  std::vector<uint8_t> out(v->count);
  if (!out.empty()) std::memcpy(out.data(), v->bytes.data(), out.size());
  return out;
}

Result<std::vector<std::string_view>> Metadata::strings(std::string_view key) const {
  const Value* v = find(key);
  if (v == nullptr) return missing(key);
  if (!v->is_array() || v->element_type != ValueType::kString) return wrong_type(key, *v, "ARRAY of STRING");
  std::vector<std::string_view> out;
  out.reserve(v->count);  // bounded: each string takes at least its 8 bytes of length in the file
  const std::byte* p = v->bytes.data();
  for (uint64_t i = 0; i < v->count; ++i) {
    const uint64_t n = load<uint64_t>(p);
    out.emplace_back(reinterpret_cast<const char*>(p + sizeof n), n);
    p += sizeof n + n;
  }
  return out;
}

template <typename T>
Result<std::vector<T>> Metadata::per_layer(std::string_view key, size_t n) const {
  if (n > kPerLayerMax) {
    return make_error(ErrorCode::kOutOfRange, "[gguf] {}: key {}: asked for {} layers, the limit is {}", source_,
                      printable(key), n, kPerLayerMax);
  }
  const Value* v = find(key);
  if (v == nullptr) return missing(key);
  if (!v->is_array()) return std::vector<T>(n, MINFER_TRY(get<T>(key)));
  if (v->count != n) {
    return make_error(ErrorCode::kCorrupt, "[gguf] {}: key {}: found {} elements, expected {} (one per layer)", source_,
                      printable(key), v->count, n);
  }
  return numbers<T>(key);
}

#define MINFER_INSTANTIATE(T)                                                   \
  template Result<T> Metadata::get<T>(std::string_view) const;                  \
  template Result<std::vector<T>> Metadata::numbers<T>(std::string_view) const; \
  template Result<std::vector<T>> Metadata::per_layer<T>(std::string_view, size_t) const;
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
template Result<bool> Metadata::get<bool>(std::string_view) const;
template Result<std::string> Metadata::get<std::string>(std::string_view) const;
template Result<std::string_view> Metadata::get<std::string_view>(std::string_view) const;

}  // namespace minfer::gguf
