// Python's operators on values: truth, arithmetic, comparison, membership, items, attributes, iteration.
// Errors: Raised with Python's own wording.
#pragma once

#include <string_view>
#include <vector>

#include "chat/jinja/ast.h"
#include "chat/jinja/bigint.h"
#include "chat/jinja/interp.h"

namespace minfer::chat::jinja {

bool truthy(const Value& v);
Value negate(Interp& in, UnaryOp op, const Value& v);  // unary - and +
Value arithmetic(Interp& in, BinaryOp op, const Value& a, const Value& b);
Value power(Interp& in, const Value& a, const Value& b);
Value absolute(Interp& in, const Value& v);                             // abs(v)
bool equals(Interp& in, const Value& a, const Value& b);                // charged
int order(Interp& in, const char* op, const Value& a, const Value& b);  // <0, 0, >0; kUnordered for NaN
int order_numbers(Interp& in, const Value& a, const Value& b);          // Requires: is_number
inline constexpr int kUnordered = 2;
bool compare(Interp& in, CompareOp op, const Value& a, const Value& b);
bool contains(Interp& in, const Value& container, const Value& item);

Value get_attribute(Interp& in, const Value& object, std::string_view name);  // object.name
Value get_item(Interp& in, const Value& object, const Value& key);            // object[key]
inline constexpr const char* kZeroStep = "slice step cannot be zero";
Value slice(Interp& in, const Value& object, const Value& start, const Value& stop, const Value& step);
// A method or attribute Python finds with getattr: nullopt when there is none.
std::optional<Value> python_attribute(Interp& in, const Value& object, std::string_view name);

// The elements `for` walks over: list items, dict keys, characters; takes what is left of an iterator.
std::vector<Value> iterate(Interp& in, const Value& v);
// Calls f(item) for each, so that an error in a later item comes after the earlier ones.
template <typename F>
void for_each_item(Interp& in, const Value& v, F&& f);
void throw_failure(IteratorObject& it);  // what its next item raised, if it did
bool iterable(const Value& v);
uint64_t length(Interp& in, const Value& v);
bool has_length(const Value& v);
std::vector<Value> characters(Interp& in, const Value& string);

bool is_int(const Value& v);       // an int of 64 bits or a bool
bool is_integral(const Value& v);  // any int or a bool
bool is_number(const Value& v);    // int, bool or float
int64_t int_of(const Value& v);    // Requires: is_int
int64_t clamped_int(
    const Value& v);              // int_of, or the end of int64 that a larger one lies beyond. Requires: is_integral
BigInt big_of(const Value& v);    // Requires: is_integral
double float_of(const Value& v);  // OverflowError when it is too large. Requires: is_number
Value integer(Interp& in, const BigInt& i);
bool is_safe(const Value& v);  // marked by the filters safe and escape
std::string undefined_message(const Value& v);
void refuse_undefined(const Value& v);    // raises its message
void require_hashable(const Value& key);  // raises unhashable type
std::string object_name(const Value& v);  // "dict object", "None": how undefined names its parent

template <typename F>
void for_each_item(Interp& in, const Value& v, F&& f) {
  if (v.is(Value::Kind::kIterator) && !v.object<IteratorObject>()->view) {
    const Value held = v;
    auto* it = held.object<IteratorObject>();
    while (it->next < it->items.size()) {
      in.step();
      const Value item = it->items[it->next++];
      f(item);
    }
    throw_failure(*it);
    return;
  }
  for (const Value& item : iterate(in, v)) f(item);
}

}  // namespace minfer::chat::jinja
