// Filters on sequences and mappings. Those that Python makes lazy give an iterator here too, computed at once.
#include <algorithm>
#include <unordered_set>

#include "base/checked.h"
#include "chat/jinja/filters.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

namespace {

Value ignore_case(Interp& in, const Value& v) { return v.is_string() ? lower_text(in, v) : v; }

// An item's sort or comparison key: an attribute or the item itself, in lower case unless case matters.
Value key_of(Interp& in, const Value& item, const Value& attribute, bool case_sensitive,
             const Value& fallback = Value()) {
  const Value key = attribute.is_none() ? item : attribute_path(in, item, attribute, fallback);
  return case_sensitive ? key : ignore_case(in, key);
}

// Stable; equal keys keep their order even when reversed, as Python's sorted does.
void sort_by(Interp& in, std::vector<std::pair<Value, Value>>& keyed, bool reverse) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    in.step();
    return reverse ? order(in, "<", b.first, a.first) == -1 : order(in, "<", a.first, b.first) == -1;
  });
}

// What Python's generator functions give: an error waits until somebody asks for the item it stopped at.
template <typename F>
Value lazily(Interp& in, F&& produce) {
  std::vector<Value> out;
  std::exception_ptr failure;
  try {
    produce(out);
  } catch (const Raised& raised) {
    if (raised.code == ErrorCode::kResourceExhausted) throw;
    failure = std::current_exception();
  }
  Value v = in.iterator(std::move(out));
  v.object<IteratorObject>()->failure = std::move(failure);
  return v;
}

Value length_filter(Interp& in, const Value& v, const Args& a) {
  return Params("len", a, {}), Value::integer(static_cast<int64_t>(length(in, v)));
}

Value default_filter(Interp&, const Value& v, const Args& a) {
  const Params p("default", a, {"default_value", "boolean"});
  static const Value kEmpty = Value::string("", true);
  return v.is_undefined() || (p.flag(1, false) && !truthy(v)) ? p.get(0, kEmpty) : v;
}

Value list(Interp& in, const Value& v, const Args& a) { return Params("list", a, {}), in.list(iterate(in, v)); }

Value first(Interp& in, const Value& v, const Args& a) {
  Params("first", a, {});
  if (v.is(Kind::kIterator) && !v.object<IteratorObject>()->view) {
    auto* it = v.object<IteratorObject>();
    if (it->next < it->items.size()) return it->items[it->next++];
    throw_failure(*it);
  } else if (v.is_sequence() || v.is_string()) {
    if (length(in, v) > 0) return get_item(in, v, Value::integer(0));
  } else {
    const std::vector<Value> items = iterate(in, v);
    if (!items.empty()) return items[0];
  }
  return in.undefined("No first item, sequence was empty.");
}

Value last(Interp& in, const Value& v, const Args& a) {
  Params("last", a, {});
  if (!iterable(v) || (v.is(Kind::kIterator) && !v.object<IteratorObject>()->view)) {
    raise_error("'{}' object is not reversible", type_name(v));
  }
  if (v.is_sequence() || v.is_string()) {
    if (length(in, v) > 0) return get_item(in, v, Value::integer(-1));
  } else {
    const std::vector<Value> items = iterate(in, v);
    if (!items.empty()) return items.back();
  }
  return in.undefined("No last item, sequence was empty.");
}

Value join(Interp& in, const Value& v, const Args& a) {
  const Params p("join", a, {"d", "attribute"});
  const Text separator = p.has(0) ? to_text(in, p[0]) : Text();
  Text out;
  bool begun = false;
  for (const Value& item : iterate(in, v)) {
    const Text piece = to_text(in, p.has(1) && !p[1].is_none() ? attribute_path(in, item, p[1], Value()) : item);
    in.charge(piece.size() + separator.size());
    if (begun) out.append(separator);
    begun = true;
    out.append(piece);
  }
  return in.text(std::move(out));
}

Value reverse(Interp& in, const Value& v, const Args& a) {
  Params("reverse", a, {});
  if (v.is_string()) return slice(in, v, Value(), Value(), Value::integer(-1));
  if (!iterable(v)) raise_error("argument must be iterable");
  const bool generator = v.is(Kind::kIterator) && !v.object<IteratorObject>()->view;
  std::vector<Value> items = iterate(in, v);
  std::reverse(items.begin(), items.end());
  if (generator) return in.list(std::move(items));
  return in.iterator(std::move(items), v.is_dict() ? "dict_reversekeyiterator" : "list_reverseiterator");
}

Value items(Interp& in, const Value& v, const Args& a) {
  Params("items", a, {});
  return lazily(in, [&](std::vector<Value>& pairs) {
    if (v.is_undefined()) return;
    if (!v.is_dict()) raise_error("Can only get item pairs from a mapping.");
    in.step(v.as_dict().size());
    for (const auto& [key, value] : v.as_dict().entries()) pairs.push_back(in.tuple({key, value}));
  });
}

Value dictsort(Interp& in, const Value& v, const Args& a) {
  const Params p("dictsort", a, {"case_sensitive", "by", "reverse"});
  const std::string by = p.has(1) ? p.text(1).bytes() : "key";
  if (by != "key" && by != "value") raise_error("You can only sort by either \"key\" or \"value\"");
  refuse_undefined(v);
  if (!v.is_dict()) raise_error("'{}' object has no attribute 'items'", type_name(v));
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : v.as_dict().entries()) {
    keyed.emplace_back(key_of(in, by == "key" ? key : value, Value(), p.flag(0, false)), in.tuple({key, value}));
  }
  sort_by(in, keyed, p.flag(2, false));
  std::vector<Value> out;
  for (auto& [key, pair] : keyed) out.push_back(std::move(pair));
  return in.list(std::move(out));
}

Value sort(Interp& in, const Value& v, const Args& a) {
  const Params p("sort", a, {"reverse", "case_sensitive", "attribute"});
  const bool case_sensitive = p.flag(1, false);
  std::vector<Value> attributes;  // "age,name" sorts by both
  if (p.has(2) && p[2].is_string()) {
    Args comma;
    comma.positional.push_back(Value::string(",", true));
    attributes = find_string_method("split")(in, p[2], comma).items();
  } else {
    attributes.push_back(p.get(2, Value()));
  }
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : iterate(in, v)) {
    std::vector<Value> keys;
    for (const Value& attribute : attributes) keys.push_back(key_of(in, item, attribute, case_sensitive));
    keyed.emplace_back(in.list(std::move(keys)), item);
  }
  sort_by(in, keyed, p.flag(0, false));
  std::vector<Value> out;
  for (auto& [key, item] : keyed) out.push_back(std::move(item));
  return in.list(std::move(out));
}

Value unique(Interp& in, const Value& v, const Args& a) {
  const Params p("unique", a, {"case_sensitive", "attribute"});
  Dict seen;
  return lazily(in, [&](std::vector<Value>& out) {
    for_each_item(in, v, [&](const Value& item) {
      const Value key = key_of(in, item, p.get(1, Value()), p.flag(0, false));
      require_hashable(key);
      in.step(key.weight());
      if (seen.find(key) != nullptr) return;
      in.charge(2 * sizeof(Value));
      seen.set(key, Value());
      out.push_back(item);
    });
  });
}

Value extreme(Interp& in, const Value& v, const Args& a, bool want_max) {
  const Params p(want_max ? "max" : "min", a, {"case_sensitive", "attribute"});
  const std::vector<Value> all = iterate(in, v);
  if (all.empty()) return in.undefined("No aggregated item, sequence was empty.");
  size_t best = 0;
  Value best_key = key_of(in, all[0], p.get(1, Value()), p.flag(0, false));
  for (size_t i = 1; i < all.size(); ++i) {
    Value key = key_of(in, all[i], p.get(1, Value()), p.flag(0, false));
    const int c = order(in, want_max ? ">" : "<", key, best_key);
    if (c == (want_max ? 1 : -1)) {
      best = i;
      best_key = std::move(key);
    }
  }
  return all[best];
}
Value min(Interp& in, const Value& v, const Args& a) { return extreme(in, v, a, false); }
Value max(Interp& in, const Value& v, const Args& a) { return extreme(in, v, a, true); }

Value sum(Interp& in, const Value& v, const Args& a) {
  const Params p("sum", a, {"attribute", "start"});
  Value total = p.get(1, Value::integer(0));
  if (total.is_string()) raise_error("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : iterate(in, v)) {
    const Value x = p.has(0) && !p[0].is_none() ? attribute_path(in, item, p[0], Value()) : item;
    total = arithmetic(in, BinaryOp::kAdd, total, x);
  }
  return total;
}

Value batch(Interp& in, const Value& v, const Args& a) {
  const Params p("batch", a, {"linecount", "fill_with"}, 1);
  return lazily(in, [&](std::vector<Value>& rows) {
    std::vector<Value> row;
    for_each_item(in, v, [&](const Value& item) {
      if (equals(in, Value::integer(static_cast<int64_t>(row.size())), p[0])) {
        rows.push_back(in.list(std::exchange(row, {})));
      }
      row.push_back(item);
    });
    if (row.empty()) return;
    if (p.has(1) && !p[1].is_none() && order(in, "<", Value::integer(static_cast<int64_t>(row.size())), p[0]) == -1) {
      const int64_t missing = p.integer(0, 0) - static_cast<int64_t>(row.size());
      in.step(static_cast<uint64_t>(missing));
      in.charge(static_cast<uint64_t>(missing) * sizeof(Value));
      row.insert(row.end(), static_cast<size_t>(missing), p[1]);
    }
    rows.push_back(in.list(std::move(row)));
  });
}

Value slice_filter(Interp& in, const Value& v, const Args& a) {
  const Params p("slice", a, {"slices", "fill_with"}, 1);
  return lazily(in, [&](std::vector<Value>& out) {
    const std::vector<Value> all = iterate(in, v);
    const int64_t slices = p.integer(0, 0);
    if (slices == 0) raise_error("integer division or modulo by zero");
    const int64_t n = static_cast<int64_t>(all.size());
    int64_t at = 0;
    for (int64_t i = 0; i < slices; ++i) {
      in.step();
      const int64_t size = n / slices + (i < n % slices ? 1 : 0);
      std::vector<Value> row(all.begin() + at, all.begin() + at + size);
      at += size;
      if (p.has(1) && !p[1].is_none() && i >= n % slices) row.push_back(p[1]);
      out.push_back(in.list(std::move(row)));
    }
  });
}

Value groupby(Interp& in, const Value& v, const Args& a) {
  const Params p("groupby", a, {"attribute", "default", "case_sensitive"}, 1);
  const bool case_sensitive = p.flag(2, false);
  const Value fallback = p.get(1, Value());
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : iterate(in, v)) keyed.emplace_back(key_of(in, item, p[0], case_sensitive, fallback), item);
  sort_by(in, keyed, false);
  std::vector<Value> out;
  for (size_t i = 0; i < keyed.size();) {
    std::vector<Value> group;
    const size_t begin = i;
    while (i < keyed.size() && equals(in, keyed[i].first, keyed[begin].first)) group.push_back(keyed[i++].second);
    const Value key = key_of(in, group[0], p[0], true, fallback);  // as the first item spells it
    Value pair = in.tuple({key, in.list(std::move(group))});
    pair.object<ListObject>()->is_group = true;
    out.push_back(std::move(pair));
  }
  return in.list(std::move(out));
}

// Jinja's picks anew each time; a prompt must not. The choices of one render are spread over the items, and each render
// makes the same ones.
Value random(Interp& in, const Value& v, const Args& a) {
  Params("random", a, {});
  const uint64_t n = length(in, v);
  if (n == 0) return in.undefined("No random item, sequence was empty.");
  if (!v.is_string() && !v.is_sequence()) raise_error("'{}' object is not subscriptable", type_name(v));
  return get_item(in, v, Value::integer(static_cast<int64_t>(in.next_random() % n)));
}

Value attr(Interp& in, const Value& v, const Args& a) {
  const Params p("attr", a, {"name"}, 1);
  if (!p[0].is_string()) raise_error("attribute name must be string, not '{}'", type_name(p[0]));
  refuse_undefined(v);
  const Text name = p.text(0);
  if (auto found = python_attribute(in, v, name.bytes())) return *found;
  return in.undefined(fmt::format("'{}' has no attribute '{}'", object_name(v), name.bytes()));
}

Args tail(const Args& a, size_t from) {
  Args rest;
  rest.positional.assign(a.positional.begin() + static_cast<std::ptrdiff_t>(from), a.positional.end());
  rest.named = a.named;
  return rest;
}

Value map(Interp& in, const Value& v, const Args& a) {
  return lazily(in, [&](std::vector<Value>& out) {
    if (!truthy(v)) return;  // none and 0 too
    if (a.positional.empty() &&
        std::any_of(a.named.begin(), a.named.end(), [](const auto& n) { return n.first == "attribute"; })) {
      const Params p("map", a, {"attribute", "default"});
      for_each_item(in, v,
                    [&](const Value& item) { out.push_back(attribute_path(in, item, p[0], p.get(1, Value()))); });
      return;
    }
    if (a.positional.empty()) raise_error("map requires a filter argument");
    const Text name = to_text(in, a.positional[0]);
    const Args rest = tail(a, 1);
    const Interp::Level level(in);
    for_each_item(in, v, [&](const Value& item) { out.push_back(in.apply_filter(name.bytes(), item, rest)); });
  });
}

Value choose(Interp& in, const Value& v, const Args& a, bool by_attribute, bool keep) {
  return lazily(in, [&](std::vector<Value>& out) {
    if (!truthy(v)) return;  // none and undefined too
    const size_t offset = by_attribute ? 1 : 0;
    if (a.positional.size() < offset) raise_error("Missing parameter for attribute name");
    const bool has_test = a.positional.size() > offset;
    const Text test = has_test ? to_text(in, a.positional[offset]) : Text();
    const Args rest = has_test ? tail(a, offset + 1) : Args();
    const Interp::Level level(in);
    for_each_item(in, v, [&](const Value& item) {
      const Value subject = by_attribute ? attribute_path(in, item, a.positional[0], Value()) : item;
      const bool passes = has_test ? in.apply_test(test.bytes(), subject, rest) : truthy(subject);
      if (passes == keep) out.push_back(item);
    });
  });
}
Value select(Interp& in, const Value& v, const Args& a) { return choose(in, v, a, false, true); }
Value reject(Interp& in, const Value& v, const Args& a) { return choose(in, v, a, false, false); }
Value selectattr(Interp& in, const Value& v, const Args& a) { return choose(in, v, a, true, true); }
Value rejectattr(Interp& in, const Value& v, const Args& a) { return choose(in, v, a, true, false); }

constexpr Named<FilterFn> kFilters[] = {
    {"attr", attr},
    {"batch", batch},
    {"count", length_filter},
    {"d", default_filter},
    {"default", default_filter},
    {"dictsort", dictsort},
    {"first", first},
    {"groupby", groupby},
    {"items", items},
    {"join", join},
    {"last", last},
    {"length", length_filter},
    {"list", list},
    {"map", map},
    {"max", max},
    {"min", min},
    {"random", random},
    {"reject", reject},
    {"rejectattr", rejectattr},
    {"reverse", reverse},
    {"select", select},
    {"selectattr", selectattr},
    {"slice", slice_filter},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

}  // namespace

std::span<const Named<FilterFn>> sequence_filters() { return kFilters; }

FilterFn find_filter(std::string_view name) {
  for (const auto& table : {text_filters(), sequence_filters()}) {
    for (const auto& f : table) {
      if (f.name == name) return f.function;
    }
  }
  return nullptr;
}

}  // namespace minfer::chat::jinja
