// The tables of filters, tests, methods and global functions, and how they read their arguments.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include "chat/jinja/interp.h"

namespace minfer::chat::jinja {

using FilterFn = Value (*)(Interp& in, const Value& input, const Args& args);
using TestFn = bool (*)(Interp& in, const Value& input, const Args& args);
using MethodFn = Value (*)(Interp& in, const Value& self, const Args& args);
using FunctionFn = Value (*)(Interp& in, const Args& args);

template <typename F>
struct Named {
  std::string_view name;
  F function;
};

FilterFn find_filter(std::string_view name);  // nullptr when there is none
TestFn find_test(std::string_view name);
MethodFn find_string_method(std::string_view name);
MethodFn find_method(const Value& self, std::string_view name);
bool mutating_method(const Value& self, std::string_view name);  // exists in Python, refused by the sandbox
std::optional<Value> find_global(Interp& in, std::string_view name);
Value bound_method(Interp& in, const Value& self, std::string_view name, MethodFn function);

// Parameters by position or name, as Python binds them; too many or unknown ones raise TypeError's words.
class Params {
 public:
  Params(const char* function, const Args& args, std::initializer_list<const char*> names, size_t required = 0);

  bool has(size_t i) const { return values_[i] != nullptr; }
  const Value& operator[](size_t i) const { return *values_[i]; }
  const Value& get(size_t i, const Value& fallback) const { return has(i) ? *values_[i] : fallback; }
  int64_t integer(size_t i, int64_t fallback) const;
  bool flag(size_t i, bool fallback) const;
  const Text& text(size_t i) const;  // a str or TypeError

 private:
  const char* function_;
  std::vector<const Value*> values_;
};

// Jinja's attribute paths: "a.b.0" walks items, an integer is an index.
Value attribute_path(Interp& in, const Value& object, const Value& path, const Value& fallback);

// str methods that filters share.
Value strip_text(Interp& in, const Value& s, const Value& chars, bool left, bool right);
Value replace_text(Interp& in, const Value& s, const Text& from, const Text& to, int64_t count);
Value percent_format(Interp& in, const Value& format, const Value& args);  // format % args
Value brace_format(Interp& in, const Value& format, const Args& args);     // format.format(...)
Value strftime_value(Interp& in, const Value& format);
Value capitalized(Interp& in, const Value& s);
Value upper_text(Interp& in, const Value& s);
Value lower_text(Interp& in, const Value& s);
Value justify(Interp& in, const Value& s, int64_t width, const Text& fill, char where);  // l, r, c
std::vector<Value> split_lines(Interp& in, const Value& s, bool keep_ends);
bool has_upper_only(const Value& s);  // str.isupper
bool has_lower_only(const Value& s);
std::optional<double> parse_float(std::string_view s);                         // Python's float("...")
std::optional<Value> parse_int(Interp& in, std::string_view s, int64_t base);  // Python's int("...", base)
Value round_number(Interp& in, const Value& v, int64_t digits, bool keep_int);

}  // namespace minfer::chat::jinja
