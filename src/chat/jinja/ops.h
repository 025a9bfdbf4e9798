// Python's operators on values: truth, arithmetic, comparison, membership, items, attributes, iteration.
// Errors: Raised with Python's own wording.
#pragma once

#include <string_view>
#include <vector>

#include "chat/jinja/ast.h"
#include "chat/jinja/interp.h"

namespace minfer::chat::jinja {

bool truthy(const Value& v);
Value negate(Interp& in, UnaryOp op, const Value& v);  // unary - and +
Value arithmetic(Interp& in, BinaryOp op, const Value& a, const Value& b);
Value power(Interp& in, const Value& a, const Value& b);
bool equals(Interp& in, const Value& a, const Value& b);                // charged
int order(Interp& in, const char* op, const Value& a, const Value& b);  // <0, 0, >0; kUnordered for NaN
inline constexpr int kUnordered = 2;
bool compare(Interp& in, CompareOp op, const Value& a, const Value& b);
bool contains(Interp& in, const Value& container, const Value& item);

Value get_attribute(Interp& in, const Value& object, std::string_view name);  // object.name
Value get_item(Interp& in, const Value& object, const Value& key);            // object[key]
Value slice(Interp& in, const Value& object, const Value& start, const Value& stop, const Value& step);
// A method or attribute Python finds with getattr: nullopt when there is none.
std::optional<Value> python_attribute(Interp& in, const Value& object, std::string_view name);

// The elements `for` walks over: list items, dict keys, characters; takes what is left of an iterator.
std::vector<Value> iterate(Interp& in, const Value& v);
bool iterable(const Value& v);
uint64_t length(Interp& in, const Value& v);
bool has_length(const Value& v);
std::vector<Value> characters(Interp& in, const Value& string);

bool is_int(const Value& v);      // int or bool
bool is_number(const Value& v);   // int, bool or float
int64_t int_of(const Value& v);   // Requires: is_int
double float_of(const Value& v);  // Requires: is_number
[[noreturn]] void overflow();
bool is_safe(const Value& v);  // marked by the filters safe and escape
std::string undefined_message(const Value& v);
void refuse_undefined(const Value& v);    // raises its message
void require_hashable(const Value& key);  // raises unhashable type
std::string object_name(const Value& v);  // "dict object", "None": how undefined names its parent

}  // namespace minfer::chat::jinja
