// Truth, arithmetic, comparison, membership and iteration.
#include "chat/jinja/ops.h"

#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "chat/jinja/builtins.h"
#include "chat/jinja/print.h"
#include "chat/jinja/unicode.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

bool is_int(const Value& v) { return v.is(Kind::kInt) || v.is(Kind::kBool); }
bool is_number(const Value& v) { return is_int(v) || v.is(Kind::kFloat); }
int64_t int_of(const Value& v) { return v.is(Kind::kBool) ? int64_t{v.as_bool()} : v.as_int(); }
double float_of(const Value& v) { return v.is(Kind::kFloat) ? v.as_float() : static_cast<double>(int_of(v)); }
bool is_safe(const Value& v) { return v.is_string() && v.object<StringObject>()->safe; }

void overflow() { throw Raised{ErrorCode::kUnsupported, "integer result does not fit 64 bits", Pos{}}; }

std::string undefined_message(const Value& v) {
  const auto* object = v.object<UndefinedObject>();
  return object != nullptr ? object->message : "value is undefined";
}

void refuse_undefined(const Value& v) {
  if (v.is_undefined()) raise_error("{}", undefined_message(v));
}

std::string object_name(const Value& v) {
  if (v.is_none()) return "None";
  if (is_safe(v)) return "markupsafe.Markup object";
  return std::string(type_name(v)) + " object";
}

void require_hashable(const Value& key) {
  if (key.is(Kind::kList) || key.is(Kind::kDict)) raise_error("unhashable type: '{}'", type_name(key));
  if (key.is(Kind::kTuple)) {
    for (const Value& item : key.items()) require_hashable(item);
  }
}

bool truthy(const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined:
    case Kind::kNone: return false;
    case Kind::kBool: return v.as_bool();
    case Kind::kInt: return v.as_int() != 0;
    case Kind::kFloat: return v.as_float() != 0;
    case Kind::kString: return !v.as_string().empty();
    case Kind::kList:
    case Kind::kTuple: return !v.items().empty();
    case Kind::kDict: return v.as_dict().size() != 0;
    case Kind::kIterator: return !v.object<IteratorObject>()->view || !v.object<IteratorObject>()->items.empty();
    default: return true;
  }
}

Value negate(Interp&, UnaryOp op, const Value& v) {
  refuse_undefined(v);
  const bool minus = op == UnaryOp::kNeg;
  if (v.is(Kind::kFloat)) return Value::real(minus ? -v.as_float() : v.as_float());
  if (!is_int(v)) raise_error("bad operand type for unary {}: '{}'", minus ? '-' : '+', type_name(v));
  if (minus && int_of(v) == std::numeric_limits<int64_t>::min()) overflow();
  return Value::integer(minus ? -int_of(v) : int_of(v));
}

namespace {

const char* symbol(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd: return "+";
    case BinaryOp::kSub: return "-";
    case BinaryOp::kMul: return "*";
    case BinaryOp::kDiv: return "/";
    case BinaryOp::kFloorDiv: return "//";
    case BinaryOp::kMod: return "%";
    case BinaryOp::kPow: return "** or pow()";
  }
  return "?";
}

[[noreturn]] void bad_operands(BinaryOp op, const Value& a, const Value& b) {
  raise_error("unsupported operand type(s) for {}: '{}' and '{}'", symbol(op), type_name(a), type_name(b));
}

int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) {
    if (a == std::numeric_limits<int64_t>::min()) overflow();
    return -a;
  }
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double float_mod(double a, double b) {  // the result has b's sign
  double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  if ((r < 0) != (b < 0)) r += b;
  return r;
}

double float_floor_div(double a, double b) {
  const double mod = float_mod(a, b);
  double q = (a - mod) / b;
  if (q == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(q);
  return q - floor > 0.5 ? floor + 1 : floor;
}

Value int_arithmetic(BinaryOp op, int64_t a, int64_t b) {
  std::optional<int64_t> r;
  switch (op) {
    case BinaryOp::kAdd: r = checked_add(a, b); break;
    case BinaryOp::kMul: r = checked_mul(a, b); break;
    case BinaryOp::kSub: {
      int64_t d;
      if (!__builtin_sub_overflow(a, b, &d)) r = d;
      break;
    }
    case BinaryOp::kDiv:
      if (b == 0) raise_error("division by zero");
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOp::kFloorDiv:
      if (b == 0) raise_error("integer division or modulo by zero");
      return Value::integer(floor_div(a, b));
    case BinaryOp::kMod:
      if (b == 0) raise_error("integer modulo by zero");
      return Value::integer(floor_mod(a, b));
    case BinaryOp::kPow: break;
  }
  if (!r) overflow();
  return Value::integer(*r);
}

Value float_arithmetic(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd: return Value::real(a + b);
    case BinaryOp::kSub: return Value::real(a - b);
    case BinaryOp::kMul: return Value::real(a * b);
    case BinaryOp::kDiv:
      if (b == 0) raise_error("float division by zero");
      return Value::real(a / b);
    case BinaryOp::kFloorDiv:
      if (b == 0) raise_error("float floor division by zero");
      return Value::real(float_floor_div(a, b));
    case BinaryOp::kMod:
      if (b == 0) raise_error("float modulo");
      return Value::real(float_mod(a, b));
    case BinaryOp::kPow: break;
  }
  return Value::none();
}

// One side is a string marked safe: the other, if plain, is escaped.
Value add_safe(Interp& in, const Value& a, const Value& b) {
  Text out = is_safe(a) ? a.as_text() : escape_html(in, a.as_text());
  out.append(is_safe(b) ? b.as_text() : escape_html(in, b.as_text()));
  return in.text(std::move(out), true);
}

Value add(Interp& in, const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) {
    if (is_safe(a) || is_safe(b)) return add_safe(in, a, b);
    in.charge(a.as_string().size() + b.as_string().size());
    Text out = a.as_text();
    out.append(b.as_text());
    return in.text(std::move(out));
  }
  if (a.is_string()) {
    raise_error("can only concatenate str (not \"{}\") to str", type_name(b));
  }
  if (a.is_sequence() && a.kind() == b.kind() && !a.object<ListObject>()->is_range &&
      !b.object<ListObject>()->is_range) {
    in.step(a.items().size() + b.items().size());
    std::vector<Value> items = a.items();
    items.insert(items.end(), b.items().begin(), b.items().end());
    return a.is(Kind::kTuple) ? in.tuple(std::move(items)) : in.list(std::move(items));
  }
  if (a.is_sequence() && !a.object<ListObject>()->is_range) {
    raise_error("can only concatenate {} (not \"{}\") to {}", type_name(a), type_name(b), type_name(a));
  }
  bad_operands(BinaryOp::kAdd, a, b);
}

Value repeat(Interp& in, const Value& sequence, int64_t times) {
  const uint64_t n = times > 0 ? static_cast<uint64_t>(times) : 0;
  if (sequence.is_string()) {
    const Text& text = sequence.as_text();
    if (text.empty()) return sequence;
    in.charge(checked_mul<uint64_t>(n, text.size()).value_or(UINT64_MAX));
    Text out;
    for (uint64_t i = 0; i < n; ++i) out.append(text);
    return in.text(std::move(out), is_safe(sequence));
  }
  const std::vector<Value>& items = sequence.items();
  in.step(checked_mul<uint64_t>(n, items.size()).value_or(UINT64_MAX));
  in.charge(n * items.size() * sizeof(Value));
  std::vector<Value> out;
  out.reserve(n * items.size());
  for (uint64_t i = 0; i < n && !items.empty(); ++i) out.insert(out.end(), items.begin(), items.end());
  return sequence.is(Kind::kTuple) ? in.tuple(std::move(out)) : in.list(std::move(out));
}

bool repeatable(const Value& v) { return v.is_string() || (v.is_sequence() && !v.object<ListObject>()->is_range); }

}  // namespace

Value power(Interp& in, const Value& a, const Value& b) {
  refuse_undefined(a);
  refuse_undefined(b);
  if (!is_number(a) || !is_number(b)) bad_operands(BinaryOp::kPow, a, b);
  if (is_int(a) && is_int(b) && int_of(b) >= 0) {
    int64_t base = int_of(a), result = 1;
    uint64_t n = static_cast<uint64_t>(int_of(b));
    if (base == 0 || base == 1 || base == -1) return Value::integer(n == 0 ? 1 : base == -1 && n % 2 == 0 ? 1 : base);
    if (n > 64) overflow();
    for (; n > 0; --n) {
      in.step();
      const auto next = checked_mul(result, base);
      if (!next) overflow();
      result = *next;
    }
    return Value::integer(result);
  }
  const double x = float_of(a), y = float_of(b);
  if (x == 0 && y < 0) raise_error("0.0 cannot be raised to a negative power");
  if (x < 0 && y != std::trunc(y)) {
    throw Raised{ErrorCode::kUnsupported, "complex numbers are not supported", Pos{}};
  }
  const double r = std::pow(x, y);
  if (std::isinf(r) && !std::isinf(x) && !std::isinf(y)) raise_error("(34, 'Numerical result out of range')");
  return Value::real(r);
}

Value arithmetic(Interp& in, BinaryOp op, const Value& a, const Value& b) {
  if (op == BinaryOp::kMod && a.is_string()) return percent_format(in, a, b);
  if (op == BinaryOp::kAdd && a.is_string() && b.is_undefined()) refuse_undefined(b);
  refuse_undefined(a);
  refuse_undefined(b);
  if (op == BinaryOp::kPow) return power(in, a, b);
  if (is_int(a) && is_int(b)) return int_arithmetic(op, int_of(a), int_of(b));
  if (is_number(a) && is_number(b)) return float_arithmetic(op, float_of(a), float_of(b));
  if (op == BinaryOp::kAdd) return add(in, a, b);
  if (op == BinaryOp::kMul) {
    if (repeatable(a) && is_int(b)) return repeat(in, a, int_of(b));
    if (is_int(a) && repeatable(b)) return repeat(in, b, int_of(a));
    if (repeatable(a) || repeatable(b)) {
      raise_error("can't multiply sequence by non-int of type '{}'", type_name(repeatable(a) ? b : a));
    }
  }
  bad_operands(op, a, b);
}

bool equals(Interp& in, const Value& a, const Value& b) {
  if (a.kind() == b.kind()) in.step(std::min(a.weight(), b.weight()));
  return equal(a, b);
}

int order(Interp& in, const char* op, const Value& a, const Value& b) {
  refuse_undefined(a);
  refuse_undefined(b);
  const auto sign = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : x == y ? 0 : kUnordered; };
  if (is_int(a) && is_int(b)) return sign(int_of(a), int_of(b));
  if (is_number(a) && is_number(b)) {
    // long double holds every int64 and every double exactly on x86; elsewhere doubles decide first.
    const double x = float_of(a), y = float_of(b);
    if (x != y || (a.is(Kind::kFloat) && b.is(Kind::kFloat))) return sign(x, y);
    return equal(a, b) ? 0
           : is_int(a) ? (x >= 0x1p63 ? -1 : sign(int_of(a), static_cast<int64_t>(y)))
                       : (y >= 0x1p63 ? 1 : sign(static_cast<int64_t>(x), int_of(b)));
  }
  if (a.is_string() && b.is_string()) {
    in.step(std::min(a.weight(), b.weight()));
    const int c = a.as_string().compare(b.as_string());  // UTF-8 sorts as code points do
    return c < 0 ? -1 : c > 0 ? 1 : 0;
  }
  if (a.is_sequence() && a.kind() == b.kind() && !a.object<ListObject>()->is_range &&
      !b.object<ListObject>()->is_range) {
    const Interp::Level level(in);
    const auto &x = a.items(), &y = b.items();
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      in.step();
      if (!equals(in, x[i], y[i])) return order(in, op, x[i], y[i]);
    }
    return sign(x.size(), y.size());
  }
  raise_error("'{}' not supported between instances of '{}' and '{}'", op, type_name(a), type_name(b));
}

bool compare(Interp& in, CompareOp op, const Value& a, const Value& b) {
  switch (op) {
    case CompareOp::kEq: return equals(in, a, b);
    case CompareOp::kNe: return !equals(in, a, b);
    case CompareOp::kLt: return order(in, "<", a, b) == -1;
    case CompareOp::kGt: return order(in, ">", a, b) == 1;
    case CompareOp::kLe: {
      const int c = order(in, "<=", a, b);
      return c == -1 || c == 0;
    }
    case CompareOp::kGe: {
      const int c = order(in, ">=", a, b);
      return c == 1 || c == 0;
    }
    case CompareOp::kIn: return contains(in, b, a);
    case CompareOp::kNotIn: return !contains(in, b, a);
  }
  return false;
}

bool contains(Interp& in, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::kUndefined: return false;
    case Kind::kString: {
      if (!item.is_string()) {
        raise_error("'in <string>' requires string as left operand, not {}", type_name(item));
      }
      const std::string &hay = container.as_string(), &needle = item.as_string();
      in.step(container.weight());
      return memmem(hay.data(), hay.size(), needle.data(), needle.size()) != nullptr;
    }
    case Kind::kDict:
      require_hashable(item);
      in.step(item.weight());
      return container.as_dict().find(item) != nullptr;
    case Kind::kList:
    case Kind::kTuple:
      for (const Value& element : container.items()) {
        in.step();
        if (equals(in, element, item)) return true;
      }
      return false;
    case Kind::kIterator: {
      auto* it = container.object<IteratorObject>();
      if (it->view) {
        for (const Value& element : it->items) {
          in.step();
          if (equals(in, element, item)) return true;
        }
        return false;
      }
      while (it->next < it->items.size()) {  // taken up to the match, as Python does
        in.step();
        if (equals(in, it->items[it->next++], item)) return true;
      }
      return false;
    }
    default: raise_error("argument of type '{}' is not iterable", type_name(container));
  }
}

bool iterable(const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kIterator: return true;
    default: return false;
  }
}

std::vector<Value> characters(Interp& in, const Value& string) {
  const Text& text = string.as_text();
  in.step(text.size());
  std::vector<Value> out;
  out.reserve(string.object<StringObject>()->n_chars);
  for (size_t at = 0; at < text.size();) {
    const size_t n = decode(text.view(), at).bytes;
    out.push_back(in.text(text.slice(at, n)));  // plain even when the string is marked safe
    at += n;
  }
  return out;
}

std::vector<Value> iterate(Interp& in, const Value& v) {
  std::vector<Value> out;
  switch (v.kind()) {
    case Kind::kUndefined: return out;
    case Kind::kString: return characters(in, v);
    case Kind::kList:
    case Kind::kTuple: out = v.items(); break;
    case Kind::kDict:
      for (const auto& [key, value] : v.as_dict().entries()) out.push_back(key);
      break;
    case Kind::kIterator: {
      auto* it = v.object<IteratorObject>();
      out.assign(it->items.begin() + static_cast<std::ptrdiff_t>(it->view ? 0 : it->next), it->items.end());
      if (!it->view) it->next = it->items.size();
      break;
    }
    default: raise_error("'{}' object is not iterable", type_name(v));
  }
  in.step(out.size());
  in.charge(out.size() * sizeof(Value));
  return out;
}

bool has_length(const Value& v) {
  return v.is_undefined() || v.is_string() || v.is_sequence() || v.is_dict() ||
         (v.is(Kind::kIterator) && v.object<IteratorObject>()->view);
}

uint64_t length(Interp&, const Value& v) {
  if (!has_length(v)) raise_error("object of type '{}' has no len()", type_name(v));
  if (v.is_undefined()) return 0;
  if (v.is_string()) return v.object<StringObject>()->n_chars;
  if (v.is_dict()) return v.as_dict().size();
  return v.is_sequence() ? v.items().size() : v.object<IteratorObject>()->items.size();
}

}  // namespace minfer::chat::jinja
