// The values a template works on: JSON's, with key order kept, and what Jinja adds (undefined, tuples, iterators,
// namespaces, callables). Containers are immutable once made and shared, so copies are cheap and no cycle can exist;
// the one mutable kind, the namespace, belongs to a render and is emptied when it ends.
// Errors:  accessors of the wrong kind abort (our bug); callers test kind() first.
// Threads: a value made of JSON kinds may be read from many threads; the others stay inside one render.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chat/text.h"

namespace minfer::chat {

class Dict;

// Containers nested deeper than this are refused: JSON, literals and values built in loops alike. It bounds every
// recursion over a value (print, compare, destroy); real tool schemas stay below 30.
inline constexpr int kMaxValueDepth = 128;

class Value {
 public:
  enum class Kind : uint8_t {
    kUndefined,
    kNone,
    kBool,
    kInt,     // int64; what overflows becomes a kBigInt
    kBigInt,  // an integer beyond int64, kept as its decimal digits (jinja/bigint.h computes with it)
    kFloat,
    kString,
    kList,
    kTuple,
    kDict,
    kIterator,   // what map, select, items, ... give: always true, walked once
    kNamespace,  // namespace(...): the target of {% set ns.x = ... %}
    kCallable,   // macros, functions, bound methods
  };

  Value() = default;  // none
  static Value none() { return {}; }
  static Value undefined(std::string name = {});
  static Value boolean(bool b);
  static Value integer(int64_t i);
  static Value big_integer(std::string digits);
  static Value real(double d);
  static Value string(std::string bytes, bool markup = false);  // data unless said otherwise
  static Value string(Text text);
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  static Value dict(Dict entries);
  static Value object(std::vector<std::pair<std::string, Value>> entries);  // a dict with string keys

  Kind kind() const { return kind_; }
  bool is(Kind k) const { return kind_ == k; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_dict() const { return kind_ == Kind::kDict; }
  bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }

  bool as_bool() const;
  int64_t as_int() const;
  double as_float() const;
  const Text& as_text() const;
  const std::string& as_string() const { return as_text().bytes(); }  // also a big integer's digits
  const std::vector<Value>& items() const;                            // list or tuple
  const Dict& as_dict() const;

  // The entry of a dict; nullptr when this is no dict or has no such key.
  const Value* find(std::string_view key) const;

  // Nesting: 0 for scalars, 1 + the deepest child for containers.
  int depth() const;
  // What a walk over the whole value costs: one per node and per 256 bytes of text, shared parts counted each time they
  // are met (saturating). Charged before anything is printed, compared or hashed.
  uint64_t weight() const;

  // Inside the engine only.
  static Value from_object(Kind kind, std::shared_ptr<void> object);
  template <typename T>
  T* object() const {
    return static_cast<T*>(p_.get());
  }
  const void* identity() const { return p_.get(); }

 private:
  Kind kind_ = Kind::kNone;
  union {
    bool b;
    int64_t i;
    double d;
  } u_ = {.i = 0};
  std::shared_ptr<void> p_;
};

// An insertion-ordered map with Python's idea of equal keys (1, 1.0 and true are one key).
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  size_t size() const { return entries_.size(); }
  const std::vector<Entry>& entries() const { return entries_; }
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(Value key, Value value);  // a known key keeps its place and its first spelling
  void set(std::string key, Value value) { set(Value::string(std::move(key)), std::move(value)); }
  int depth() const { return depth_; }
  uint64_t weight() const { return weight_; }

 private:
  int64_t position(const Value& key, size_t hash) const;
  std::vector<Entry> entries_;
  std::unordered_multimap<size_t, uint32_t> index_;  // hash -> entry, kept once there are more than a few entries
  int depth_ = 1;
  uint64_t weight_ = 1;
};

// Python's ==: numbers across kinds, containers by content, undefined equals undefined.
bool equal(const Value& a, const Value& b);

// "str", "int", "NoneType", ...: the names Python's messages use.
const char* type_name(const Value& v);

}  // namespace minfer::chat
