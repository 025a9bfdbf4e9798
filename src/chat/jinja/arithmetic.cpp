// + - * / // % ** on numbers, strings and sequences, and the order of numbers.
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "chat/jinja/builtins.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

Value integer(Interp& in, const BigInt& i) {
  if (const auto small = i.narrow()) return Value::integer(*small);
  in.step(i.cost());
  in.charge(i.bits() / 3 + sizeof(StringObject));
  return Value::big_integer(i.text());
}

BigInt big_of(const Value& v) { return is_int(v) ? BigInt(int_of(v)) : *BigInt::parse(v.as_string()); }

double float_of(const Value& v) {
  if (v.is(Kind::kFloat)) return v.as_float();
  if (is_int(v)) return static_cast<double>(int_of(v));
  const double d = big_of(v).as_double();
  if (std::isinf(d)) raise_error("int too large to convert to float");
  return d;
}

Value negate(Interp& in, UnaryOp op, const Value& v) {
  refuse_undefined(v);
  const bool minus = op == UnaryOp::kNeg;
  if (v.is(Kind::kFloat)) return Value::real(minus ? -v.as_float() : v.as_float());
  if (!is_integral(v)) raise_error("bad operand type for unary {}: '{}'", minus ? '-' : '+', type_name(v));
  return integer(in, minus ? -big_of(v) : big_of(v));
}

Value absolute(Interp& in, const Value& v) {
  if (v.is(Kind::kFloat)) return Value::real(std::fabs(v.as_float()));
  if (!is_integral(v)) raise_error("bad operand type for abs(): '{}'", type_name(v));
  const BigInt i = big_of(v);
  return integer(in, i.negative() ? -i : i);
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

double float_mod(double a, double b) {  // the result has b's sign
  double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  if ((r < 0) != (b < 0)) r += b;
  return r;
}

double float_floor_div(double a, double b) {
  double mod = std::fmod(a, b);
  double q = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) q -= 1;
  if (q == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(q);
  return q - floor > 0.5 ? floor + 1 : floor;
}

Value big_arithmetic(Interp& in, BinaryOp op, const BigInt& a, const BigInt& b) {
  in.step(a.cost() + b.cost());
  if (b.zero()) {
    if (op == BinaryOp::kDiv) raise_error("division by zero");
    if (op == BinaryOp::kFloorDiv) raise_error("integer division or modulo by zero");
    if (op == BinaryOp::kMod) raise_error("integer modulo by zero");
  }
  BigInt result;
  switch (op) {
    case BinaryOp::kAdd: result = a + b; break;
    case BinaryOp::kSub: result = a - b; break;
    case BinaryOp::kMul: result = a * b; break;
    case BinaryOp::kDiv: {
      const double d = BigInt::true_divide(a, b);
      if (std::isinf(d)) raise_error("integer division result too large for a float");
      return Value::real(d);
    }
    case BinaryOp::kFloorDiv: BigInt::divide(a, b, &result, nullptr); break;
    case BinaryOp::kMod: BigInt::divide(a, b, nullptr, &result); break;
    case BinaryOp::kPow: break;
  }
  return integer(in, result);
}

Value int_arithmetic(Interp& in, BinaryOp op, int64_t a, int64_t b) {
  constexpr int64_t kExact = int64_t{1} << 53;  // every int up to here is a double
  const bool minus_one = b == -1;               // the one divisor that can overflow
  int64_t r;
  switch (op) {
    case BinaryOp::kAdd:
      if (!__builtin_add_overflow(a, b, &r)) return Value::integer(r);
      break;
    case BinaryOp::kSub:
      if (!__builtin_sub_overflow(a, b, &r)) return Value::integer(r);
      break;
    case BinaryOp::kMul:
      if (!__builtin_mul_overflow(a, b, &r)) return Value::integer(r);
      break;
    case BinaryOp::kDiv:
      if (b != 0 && a <= kExact && a >= -kExact && b <= kExact && b >= -kExact) {
        return Value::real(static_cast<double>(a) / static_cast<double>(b));
      }
      break;
    case BinaryOp::kFloorDiv:
      if (b == 0 || minus_one) break;
      return Value::integer(a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0));
    case BinaryOp::kMod:
      if (b == 0 || minus_one) break;
      r = a % b;
      return Value::integer(r != 0 && (r < 0) != (b < 0) ? r + b : r);
    case BinaryOp::kPow: break;
  }
  return big_arithmetic(in, op, BigInt(a), BigInt(b));
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

Value repeat(Interp& in, const Value& sequence, const Value& count) {
  if (!is_int(count)) raise_error("cannot fit 'int' into an index-sized integer");
  const uint64_t n = int_of(count) > 0 ? static_cast<uint64_t>(int_of(count)) : 0;
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

Value int_power(Interp& in, const BigInt& a, const BigInt& b) {
  if (b.zero()) return Value::integer(1);
  if (a.bits() <= 1) return integer(in, a.negative() && !b.odd() ? BigInt(1) : a);  // 0, 1, -1
  const auto n = b.narrow();
  // The result has at least (bits - 1) * n bits: what is far too long is refused before it is computed.
  if (!n || static_cast<uint64_t>(*n) > BigInt::kMaxBits / (a.bits() - 1)) {
    throw Raised{ErrorCode::kUnsupported, fmt::format("an integer has more than {} bits", BigInt::kMaxBits), Pos{}};
  }
  in.step(static_cast<uint64_t>(*n) * a.bits() * static_cast<uint64_t>(*n) * a.bits() / 65536);
  return integer(in, a.power(static_cast<uint64_t>(*n)));
}

}  // namespace

Value power(Interp& in, const Value& a, const Value& b) {
  refuse_undefined(a);
  refuse_undefined(b);
  if (!is_number(a) || !is_number(b)) bad_operands(BinaryOp::kPow, a, b);
  if (is_integral(a) && is_integral(b)) {
    const BigInt n = big_of(b);
    if (!n.negative()) return int_power(in, big_of(a), n);
  }
  const double x = float_of(a), y = float_of(b);
  if (x == 0 && y < 0) raise_error("0.0 cannot be raised to a negative power");
  if (x < 0 && std::isfinite(x) && std::isfinite(y) && y != std::trunc(y)) {
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
  if (is_int(a) && is_int(b)) return int_arithmetic(in, op, int_of(a), int_of(b));
  if (is_integral(a) && is_integral(b)) return big_arithmetic(in, op, big_of(a), big_of(b));
  if (is_number(a) && is_number(b)) return float_arithmetic(op, float_of(a), float_of(b));
  if (op == BinaryOp::kAdd) return add(in, a, b);
  if (op == BinaryOp::kMul) {
    if (repeatable(a) && is_integral(b)) return repeat(in, a, b);
    if (is_integral(a) && repeatable(b)) return repeat(in, b, a);
    if (repeatable(a) || repeatable(b)) {
      raise_error("can't multiply sequence by non-int of type '{}'", type_name(repeatable(a) ? b : a));
    }
  }
  bad_operands(op, a, b);
}

int order_numbers(Interp& in, const Value& a, const Value& b) {
  const auto sign = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : x == y ? 0 : kUnordered; };
  if (is_int(a) && is_int(b)) return sign(int_of(a), int_of(b));
  if (a.is(Kind::kFloat) && b.is(Kind::kFloat)) return sign(a.as_float(), b.as_float());
  if (b.is(Kind::kFloat)) {
    const int c = order_numbers(in, b, a);
    return c == kUnordered ? c : -c;
  }
  if (!a.is(Kind::kFloat)) {
    in.step((a.weight() + b.weight()) * 64);
    return compare(big_of(a), big_of(b));
  }
  // A float against an int, exactly: by their whole parts first.
  const double x = a.as_float();
  if (std::isnan(x)) return kUnordered;
  if (std::isinf(x)) return x < 0 ? -1 : 1;
  in.step((a.weight() + b.weight()) * 64);
  const int c = compare(BigInt::of(x), big_of(b));
  return c != 0 ? c : sign(x, std::trunc(x));
}

}  // namespace minfer::chat::jinja
