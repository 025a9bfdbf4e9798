// Truth, arithmetic, comparison, membership and iteration.
#include "chat/jinja/ops.h"

#include <cmath>
#include <cstring>

#include "chat/jinja/builtins.h"
#include "chat/jinja/print.h"
#include "chat/jinja/unicode.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

bool is_int(const Value& v) { return v.is(Kind::kInt) || v.is(Kind::kBool); }
bool is_integral(const Value& v) { return is_int(v) || v.is(Kind::kBigInt); }
bool is_number(const Value& v) { return is_integral(v) || v.is(Kind::kFloat); }
int64_t int_of(const Value& v) { return v.is(Kind::kBool) ? int64_t{v.as_bool()} : v.as_int(); }
int64_t clamped_int(const Value& v) {
  if (is_int(v)) return int_of(v);
  return v.as_string()[0] == '-' ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}
bool is_safe(const Value& v) { return v.is_string() && v.object<StringObject>()->safe; }

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
  const bool list = key.is(Kind::kList) && !key.object<ListObject>()->is_range;
  const bool view = key.is(Kind::kIterator) && key.object<IteratorObject>()->view &&
                    std::string_view(key.object<IteratorObject>()->type_name) != "dict_values";
  if (list || view || key.is(Kind::kDict)) raise_error("unhashable type: '{}'", type_name(key));
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

bool equals(Interp& in, const Value& a, const Value& b) {
  if (a.kind() == b.kind()) in.step(std::min(a.weight(), b.weight()));
  return equal(a, b);
}

int order(Interp& in, const char* op, const Value& a, const Value& b) {
  refuse_undefined(a);
  refuse_undefined(b);
  const auto sign = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : x == y ? 0 : kUnordered; };
  if (is_number(a) && is_number(b)) return order_numbers(in, a, b);
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
        if (std::string_view(it->type_name) == "dict_keys") require_hashable(item);
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
      throw_failure(*it);
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

void throw_failure(IteratorObject& it) {
  if (it.failure) std::rethrow_exception(std::exchange(it.failure, nullptr));
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
      if (!it->view) {
        it->next = it->items.size();
        throw_failure(*it);
      }
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
