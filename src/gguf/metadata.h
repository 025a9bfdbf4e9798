// Metadata: the typed keys and values of a GGUF file.
// Layout: values are views into the file's bytes, in file order; nothing is copied until asked for, so that a
//         vocabulary of 151,000 strings costs a few milliseconds. Views live as long as the File they come from.
// Errors: a missing key, a wrong type or a value that does not fit is an Error that names file, key, what was found
//         and what was expected. No conversion loses anything: integers must fit, floats are never read as integers.
// Threads: read-only after it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "gguf/types.h"

namespace minfer::gguf {

// One value, already checked to lie inside the file and to be well formed.
struct Value {
  ValueType type = ValueType::kU8;
  ValueType element_type = ValueType::kU8;  // of an ARRAY
  uint64_t count = 1;                       // elements of an ARRAY
  std::span<const std::byte> bytes;         // a scalar's bytes; a STRING's text; an ARRAY's elements as in the file

  bool is_array() const { return type == ValueType::kArray; }
  std::string type_name() const;  // "UINT32", "ARRAY of STRING (32000 elements)"
};

class Metadata {
 public:
  struct Entry {
    std::string_view key;
    Value value;
  };

  Metadata() = default;
  explicit Metadata(std::string source) : source_(std::move(source)) {}

  const std::string& source() const { return source_; }  // the file, as errors name it
  const std::vector<Entry>& entries() const { return entries_; }
  const Value* find(std::string_view key) const;  // nullptr when absent
  bool has(std::string_view key) const { return find(key) != nullptr; }

  // Scalars. T: bool, [u]int8_t..[u]int64_t, float, double, std::string_view, std::string.
  //   integers accept every integer type whose value fits T; float and double accept FLOAT32 and FLOAT64 (a double
  //   beyond the range of float is an error); bool accepts BOOL only; strings accept STRING only.
  template <typename T>
  Result<T> get(std::string_view key) const;
  // The same, with `fallback` where the key is absent. A key that is there with a wrong type is still an error.
  template <typename T>
  Result<T> get_or(std::string_view key, T fallback) const {
    if (!has(key)) return fallback;
    return get<T>(key);
  }

  // Arrays, as copies in T: the numeric types above (element rules as for get), or uint8_t 0/1 from BOOL by bools().
  template <typename T>
  Result<std::vector<T>> numbers(std::string_view key) const;
  Result<std::vector<uint8_t>> bools(std::string_view key) const;
  Result<std::vector<std::string_view>> strings(std::string_view key) const;  // views into the file

  // A number per layer: an array of exactly n elements, or one scalar that holds for all n. n beyond kPerLayerMax is
  // an error, so that a made-up count of layers cannot ask for memory.
  static constexpr size_t kPerLayerMax = 65536;  // some 100 times the deepest model
  template <typename T>
  Result<std::vector<T>> per_layer(std::string_view key, size_t n) const;

  // Adds an entry whose views outlive this object. False when the key is there already.
  bool add(std::string_view key, const Value& value);

 private:
  Error missing(std::string_view key) const;
  Error wrong_type(std::string_view key, const Value& found, std::string_view expected) const;

  std::string source_;
  std::vector<Entry> entries_;
  std::map<std::string_view, size_t> index_;  // ordered: no choice of keys makes it slow, as a hash could be made
};

}  // namespace minfer::gguf
