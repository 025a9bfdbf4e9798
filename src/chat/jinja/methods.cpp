// Methods of dict, list, tuple and numbers. Those that would change a value are refused, as in Jinja's immutable
// sandbox, which Hugging Face uses.
#include <algorithm>
#include <cmath>

#include "chat/jinja/builtins.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

namespace {

Value dict_get(Interp& in, const Value& self, const Args& a) {
  const Params p("get", a, {"key", "default"}, 1);
  require_hashable(p[0]);
  in.step(p[0].weight());
  const Value* found = self.as_dict().find(p[0]);
  return found != nullptr ? *found : p.get(1, Value());
}

Value dict_items(Interp& in, const Value& self, const Args& a) {
  Params("items", a, {});
  std::vector<Value> pairs;
  in.step(self.as_dict().size());
  for (const auto& [key, value] : self.as_dict().entries()) pairs.push_back(in.tuple({key, value}));
  return in.iterator(std::move(pairs), "dict_items", true);
}

Value dict_keys(Interp& in, const Value& self, const Args& a) {
  Params("keys", a, {});
  return in.iterator(iterate(in, self), "dict_keys", true);
}

Value dict_values(Interp& in, const Value& self, const Args& a) {
  Params("values", a, {});
  std::vector<Value> values;
  in.step(self.as_dict().size());
  for (const auto& [key, value] : self.as_dict().entries()) values.push_back(value);
  return in.iterator(std::move(values), "dict_values", true);
}

Value copy(Interp&, const Value& self, const Args& a) {
  Params("copy", a, {});
  return self;  // values never change
}

Value list_count(Interp& in, const Value& self, const Args& a) {
  const Params p("count", a, {"value"}, 1);
  int64_t n = 0;
  for (const Value& item : self.items()) {
    in.step();
    n += equals(in, item, p[0]) ? 1 : 0;
  }
  return Value::integer(n);
}

Value list_index(Interp& in, const Value& self, const Args& a) {
  const Params p("index", a, {"value", "start", "stop"}, 1);
  const int64_t n = static_cast<int64_t>(self.items().size());
  const auto place = [&](int64_t i) { return i < 0 ? std::max<int64_t>(0, i + n) : std::min(i, n); };
  const int64_t stop = place(p.integer(2, n));
  for (int64_t i = place(p.integer(1, 0)); i < stop; ++i) {
    in.step();
    if (equals(in, self.items()[static_cast<size_t>(i)], p[0])) return Value::integer(i);
  }
  Text repr;
  append_repr(in, repr, p[0]);
  raise_error("{} is not in {}", repr.bytes(), type_name(self));
}

Value float_is_integer(Interp&, const Value& self, const Args& a) {
  Params("is_integer", a, {});
  return Value::boolean(std::isfinite(self.as_float()) && self.as_float() == std::trunc(self.as_float()));
}

constexpr Named<MethodFn> kDictMethods[] = {
    {"copy", copy}, {"get", dict_get}, {"items", dict_items}, {"keys", dict_keys}, {"values", dict_values}};
constexpr Named<MethodFn> kListMethods[] = {{"copy", copy}, {"count", list_count}, {"index", list_index}};
constexpr Named<MethodFn> kTupleMethods[] = {{"count", list_count}, {"index", list_index}};
constexpr Named<MethodFn> kFloatMethods[] = {{"is_integer", float_is_integer}};

constexpr std::string_view kDictMutating[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kListMutating[] = {"append", "clear",  "extend",  "insert",
                                              "pop",    "remove", "reverse", "sort"};

template <typename Table>
MethodFn look_up(const Table& table, std::string_view name) {
  for (const auto& m : table) {
    if (m.name == name) return m.function;
  }
  return nullptr;
}

bool plain_list(const Value& v) { return v.is(Kind::kList) && !v.object<ListObject>()->is_range; }

}  // namespace

MethodFn find_method(const Value& self, std::string_view name) {
  switch (self.kind()) {
    case Kind::kString: return find_string_method(name);
    case Kind::kDict: return look_up(kDictMethods, name);
    case Kind::kList: return plain_list(self) ? look_up(kListMethods, name) : look_up(kTupleMethods, name);
    case Kind::kTuple: return look_up(kTupleMethods, name);
    case Kind::kFloat: return look_up(kFloatMethods, name);
    default: return nullptr;
  }
}

bool mutating_method(const Value& self, std::string_view name) {
  const auto has = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return self.is_dict() ? has(kDictMutating) : plain_list(self) && has(kListMutating);
}

}  // namespace minfer::chat::jinja
