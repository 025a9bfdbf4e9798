// Attributes, items and slices, as Jinja's sandbox resolves them.
#include <limits>

#include "chat/jinja/builtins.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"
#include "chat/jinja/unicode.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

namespace {

Value unsafe_attribute(Interp& in, const Value& object, std::string_view name) {
  return in.undefined(fmt::format("access to attribute '{}' of '{}' object is unsafe.", name,
                                  object.is_none() ? "NoneType" : type_name(object)));
}

Value no_attribute(Interp& in, const Value& object, std::string_view name) {
  return in.undefined(fmt::format("'{}' has no attribute '{}'", object_name(object), name));
}

// Element i of a sequence or string, counted from the end when negative; nullopt outside.
std::optional<Value> element(Interp& in, const Value& object, int64_t i) {
  const int64_t n = static_cast<int64_t>(length(in, object));
  if (i < 0) i += n;
  if (i < 0 || i >= n) return std::nullopt;
  const size_t at = static_cast<size_t>(i);
  if (!object.is_string()) return object.items()[at];
  const auto* s = object.object<StringObject>();
  if (s->ascii()) return in.text(s->text.slice(at, 1), s->safe);
  in.step(at / 64);
  const size_t begin = byte_offset(s->text.view(), at);
  return in.text(s->text.slice(begin, decode(s->text.view(), begin).bytes), s->safe);
}

}  // namespace

std::optional<Value> python_attribute(Interp& in, const Value& object, std::string_view name) {
  if (name.starts_with("_")) {
    // Python's internals exist on every object and are all refused; nothing here has other names of that kind.
    if (name.starts_with("__") && name.ends_with("__")) return unsafe_attribute(in, object, name);
    return std::nullopt;
  }
  if (object.is(Kind::kNamespace)) {
    if (const Value* v = object.object<NamespaceObject>()->attributes.find(name)) return *v;
    return std::nullopt;
  }
  if (object.is(Kind::kCallable)) return object.object<CallableObject>()->attribute(in, name);
  if (object.is(Kind::kTuple) && object.object<ListObject>()->is_group) {
    if (name == "grouper") return object.items()[0];
    if (name == "list") return object.items()[1];
  }
  if (const MethodFn method = find_method(object, name)) return bound_method(in, object, name, method);
  if (mutating_method(object, name)) return unsafe_attribute(in, object, name);
  return std::nullopt;
}

Value get_attribute(Interp& in, const Value& object, std::string_view name) {
  refuse_undefined(object);
  if (auto found = python_attribute(in, object, name)) return *found;
  if (const Value* item = object.find(name)) return *item;
  return no_attribute(in, object, name);
}

Value get_item(Interp& in, const Value& object, const Value& key) {
  refuse_undefined(object);
  if (object.is_dict()) {
    if ((!key.is(Kind::kList) || key.object<ListObject>()->is_range) && !key.is_dict()) {
      in.step(key.weight());
      if (const Value* item = object.as_dict().find(key)) return *item;
    }
  } else if ((object.is_string() || object.is_sequence()) && is_int(key)) {
    if (auto found = element(in, object, int_of(key))) return *found;
  }
  if (key.is_string()) {
    if (auto found = python_attribute(in, object, key.as_string())) return *found;
    return no_attribute(in, object, key.as_string());
  }
  Text repr;
  append_repr(in, repr, key);
  return in.undefined(fmt::format("{} has no element {}", object_name(object), repr.bytes()));
}

Value slice(Interp& in, const Value& object, const Value& start, const Value& stop, const Value& step) {
  refuse_undefined(object);
  if (object.is_dict()) raise_error("unhashable type: 'slice'");
  if (!object.is_string() && !object.is_sequence()) {
    raise_error("'{}' object is not subscriptable", type_name(object));
  }
  for (const Value* bound : {&start, &stop, &step}) {
    refuse_undefined(*bound);
    if (!bound->is_none() && !is_integral(*bound)) {
      raise_error("slice indices must be integers or None or have an __index__ method");
    }
  }
  const int64_t by = step.is_none() ? 1 : clamped_int(step);
  if (by == 0) raise_error("{}", kZeroStep);
  const int64_t n = static_cast<int64_t>(length(in, object));
  // Where a bound lies once negative ones count from the end and all are cut to the sequence.
  const auto place = [&](const Value& bound, int64_t absent) {
    if (bound.is_none()) return absent;
    int64_t i = clamped_int(bound);
    if (i < 0) i = std::max(i + n, by < 0 ? int64_t{-1} : int64_t{0});
    return std::min(i, by < 0 ? n - 1 : n);
  };
  const int64_t from = place(start, by < 0 ? n - 1 : 0);
  const int64_t to = place(stop, by < 0 ? -1 : n);
  int64_t count = 0;
  if (by > 0 && to > from) count = (to - from - 1) / by + 1;
  if (by < 0 && to < from) count = by == std::numeric_limits<int64_t>::min() ? 1 : (from - to - 1) / -by + 1;
  in.step(static_cast<uint64_t>(count) / 16);

  if (object.is_string()) {
    const auto* s = object.object<StringObject>();
    Text out;
    if (count > 0 && by == 1) {
      const size_t begin =
          s->ascii() ? static_cast<size_t>(from) : byte_offset(s->text.view(), static_cast<size_t>(from));
      const size_t size = s->ascii() ? static_cast<size_t>(count)
                                     : byte_offset(s->text.view().substr(begin), static_cast<size_t>(count));
      in.step(s->text.size() / 256);
      return in.text(s->text.slice(begin, size), s->safe);
    }
    if (count > 0) {
      in.step(s->text.size());
      std::vector<size_t> offsets;  // of each character
      for (size_t at = 0; at < s->text.size(); at += decode(s->text.view(), at).bytes) offsets.push_back(at);
      offsets.push_back(s->text.size());
      for (int64_t k = 0, i = from; k < count; ++k, i += k < count ? by : 0) {
        const size_t at = offsets[static_cast<size_t>(i)];
        out.append_slice(s->text, at, offsets[static_cast<size_t>(i) + 1] - at);
      }
    }
    return in.text(std::move(out), s->safe);
  }
  const auto* list = object.object<ListObject>();
  std::vector<Value> items;
  for (int64_t k = 0, i = from; k < count; ++k, i += k < count ? by : 0)
    items.push_back(list->items[static_cast<size_t>(i)]);
  if (object.is(Kind::kTuple)) return in.tuple(std::move(items));
  Value out = in.list(std::move(items));
  if (list->is_range) {
    auto* made = out.object<ListObject>();
    made->is_range = true;
    const auto fit = [](const BigInt& i) {
      const auto narrow = i.narrow();
      if (!narrow) raise_error("Python int too large to convert to C ssize_t");
      return *narrow;
    };
    const RangeBounds& r = list->range;
    const auto at = [&](int64_t i) { return fit(BigInt(r.start) + BigInt(r.step) * BigInt(i)); };
    made->range = {at(from), at(to), fit(BigInt(r.step) * BigInt(by))};
  }
  return out;
}

}  // namespace minfer::chat::jinja
