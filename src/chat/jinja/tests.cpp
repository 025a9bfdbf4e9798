// The tests of `is`.
#include "chat/jinja/builtins.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"
#include "chat/jinja/unicode.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

namespace {

template <Kind kind>
bool of_kind(Interp&, const Value& v, const Args& a) {
  return Params("test", a, {}), v.is(kind);
}

bool defined(Interp&, const Value& v, const Args& a) { return Params("defined", a, {}), !v.is_undefined(); }
bool is_true(Interp&, const Value& v, const Args& a) { return Params("true", a, {}), v.is(Kind::kBool) && v.as_bool(); }
bool is_false(Interp&, const Value& v, const Args& a) {
  return Params("false", a, {}), v.is(Kind::kBool) && !v.as_bool();
}
bool integer(Interp&, const Value& v, const Args& a) {
  return Params("integer", a, {}), v.is(Kind::kInt) || v.is(Kind::kBigInt);
}
bool number(Interp&, const Value& v, const Args& a) {
  return Params("number", a, {}), is_number(v) || v.is(Kind::kBigInt);
}
bool mapping(Interp&, const Value& v, const Args& a) { return Params("mapping", a, {}), v.is_dict(); }

// Whatever has a length and items: strings, lists, mappings, undefined.
bool sequence(Interp&, const Value& v, const Args& a) {
  return Params("sequence", a, {}), has_length(v) && !v.is(Kind::kIterator);
}
bool is_iterable(Interp&, const Value& v, const Args& a) { return Params("iterable", a, {}), iterable(v); }
bool callable(Interp&, const Value& v, const Args& a) {
  return Params("callable", a, {}), v.is(Kind::kCallable) || v.is_undefined();
}
bool escaped(Interp&, const Value& v, const Args& a) { return Params("escaped", a, {}), is_safe(v); }

bool divisible(Interp& in, const Value& v, const Args& a, const Value& by) {
  return equals(in, arithmetic(in, BinaryOp::kMod, v, by), Value::integer(0));
}
bool even(Interp& in, const Value& v, const Args& a) {
  return Params("even", a, {}), divisible(in, v, a, Value::integer(2));
}
bool odd(Interp& in, const Value& v, const Args& a) {
  Params("odd", a, {});
  return equals(in, arithmetic(in, BinaryOp::kMod, v, Value::integer(2)), Value::integer(1));
}
bool divisibleby(Interp& in, const Value& v, const Args& a) {
  return divisible(in, v, a, Params("divisibleby", a, {"num"}, 1)[0]);
}

bool lower(Interp& in, const Value& v, const Args& a) {
  Params("lower", a, {});
  const Value s = v.is_string() ? v : in.text(to_text(in, v));  // lists as they print
  in.step(s.weight());
  return has_lower_only(s);
}
bool upper(Interp& in, const Value& v, const Args& a) {
  Params("upper", a, {});
  const Value s = v.is_string() ? v : in.text(to_text(in, v));
  in.step(s.weight());
  return has_upper_only(s);
}

template <CompareOp op>
bool compares(Interp& in, const Value& v, const Args& a) {
  return compare(in, op, v, Params("comparison", a, {"other"}, 1)[0]);
}

bool sameas(Interp& in, const Value& v, const Args& a) {
  const Value& other = Params("sameas", a, {"other"}, 1)[0];
  if (v.kind() != other.kind()) return false;
  if (v.identity() != nullptr && !v.is_string()) return v.identity() == other.identity();
  return equals(in, v, other);
}

bool in_test(Interp& in, const Value& v, const Args& a) { return contains(in, Params("in", a, {"seq"}, 1)[0], v); }
bool filter_exists(Interp&, const Value& v, const Args& a) {
  Params("filter", a, {});
  require_hashable(v);
  return v.is_string() && find_filter(v.as_string()) != nullptr;
}
bool test_exists(Interp&, const Value& v, const Args& a) {
  Params("test", a, {});
  require_hashable(v);
  return v.is_string() && find_test(v.as_string()) != nullptr;
}

constexpr Named<TestFn> kTests[] = {
    {"!=", compares<CompareOp::kNe>},
    {"<", compares<CompareOp::kLt>},
    {"<=", compares<CompareOp::kLe>},
    {"==", compares<CompareOp::kEq>},
    {">", compares<CompareOp::kGt>},
    {">=", compares<CompareOp::kGe>},
    {"boolean", of_kind<Kind::kBool>},
    {"callable", callable},
    {"defined", defined},
    {"divisibleby", divisibleby},
    {"eq", compares<CompareOp::kEq>},
    {"equalto", compares<CompareOp::kEq>},
    {"escaped", escaped},
    {"even", even},
    {"false", is_false},
    {"filter", filter_exists},
    {"float", of_kind<Kind::kFloat>},
    {"ge", compares<CompareOp::kGe>},
    {"greaterthan", compares<CompareOp::kGt>},
    {"gt", compares<CompareOp::kGt>},
    {"in", in_test},
    {"integer", integer},
    {"iterable", is_iterable},
    {"le", compares<CompareOp::kLe>},
    {"lessthan", compares<CompareOp::kLt>},
    {"lower", lower},
    {"lt", compares<CompareOp::kLt>},
    {"mapping", mapping},
    {"ne", compares<CompareOp::kNe>},
    {"none", of_kind<Kind::kNone>},
    {"number", number},
    {"odd", odd},
    {"sameas", sameas},
    {"sequence", sequence},
    {"string", of_kind<Kind::kString>},
    {"test", test_exists},
    {"true", is_true},
    {"undefined", of_kind<Kind::kUndefined>},
    {"upper", upper},
};

}  // namespace

TestFn find_test(std::string_view name) {
  for (const auto& t : kTests) {
    if (t.name == name) return t.function;
  }
  return nullptr;
}

}  // namespace minfer::chat::jinja
