// Construction, access, equality and the ordered dict.
#include "chat/value.h"

#include <chrono>
#include <cmath>
#include <functional>
#include <limits>

#include "base/error.h"
#include "chat/jinja/unicode.h"
#include "chat/value_objects.h"

namespace minfer::chat {

namespace {

// Below this many entries a linear search beats the index.
constexpr size_t kDictIndexFrom = 9;

size_t mix(size_t seed, size_t h) { return seed ^ (h + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2)); }

// Whether a double is exactly an int64; 2^63 itself is not.
bool integral(double d, int64_t* out) {
  if (!(d >= -0x1p63 && d < 0x1p63) || d != std::trunc(d)) return false;
  *out = static_cast<int64_t>(d);
  return true;
}

// The digits of a double that is a whole number beyond int64; "" for others.
std::string big_digits(double d) {
  if (!std::isfinite(d) || std::fabs(d) < 0x1p63) return {};
  return fmt::format("{:.0f}", d);
}

size_t plain_hash(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::kNone: return 0x6e6f6e65;
    case Value::Kind::kBool: return std::hash<int64_t>{}(v.as_bool());
    case Value::Kind::kInt: return std::hash<int64_t>{}(v.as_int());
    case Value::Kind::kFloat: {
      int64_t i;
      if (integral(v.as_float(), &i)) return std::hash<int64_t>{}(i);
      const std::string digits = big_digits(v.as_float());  // as the equal integer
      return digits.empty() ? std::hash<double>{}(v.as_float()) : std::hash<std::string_view>{}(digits);
    }
    case Value::Kind::kBigInt:
    case Value::Kind::kString: return std::hash<std::string_view>{}(v.as_string());
    case Value::Kind::kList:  // a range: the only one that may be a key
      return mix(0x72616e67, v.items().empty() ? 0 : mix(v.items().size(), plain_hash(v.items()[0])));
    case Value::Kind::kTuple: {
      size_t h = 0x7475706c;
      for (const Value& item : v.items()) h = mix(h, plain_hash(item));
      return h;
    }
    default: return std::hash<const void*>{}(v.identity());
  }
}

// Other in each process, so that no input can hold many keys that meet in one bucket.
size_t salted(size_t h) {
  static const size_t salt = reinterpret_cast<uintptr_t>(&salt) * 0x9e3779b97f4a7c15ull ^
                             static_cast<size_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  h ^= salt;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
  return h ^ (h >> 31);
}

size_t hash_value(const Value& v) { return salted(plain_hash(v)); }

bool number_equal(const Value& a, const Value& b) {
  const bool a_float = a.is(Value::Kind::kFloat), b_float = b.is(Value::Kind::kFloat);
  const bool a_big = a.is(Value::Kind::kBigInt), b_big = b.is(Value::Kind::kBigInt);
  if (a_big && b_big) return a.as_string() == b.as_string();
  if (a_big) return b_float && big_digits(b.as_float()) == a.as_string();
  if (b_big) return a_float && big_digits(a.as_float()) == b.as_string();
  const auto as_int = [](const Value& v) { return v.is(Value::Kind::kBool) ? int64_t{v.as_bool()} : v.as_int(); };
  if (a_float && b_float) return a.as_float() == b.as_float();
  if (!a_float && !b_float) return as_int(a) == as_int(b);
  int64_t i;
  return integral((a_float ? a : b).as_float(), &i) && i == as_int(a_float ? b : a);
}

bool is_number(const Value& v) {
  return v.is(Value::Kind::kBool) || v.is(Value::Kind::kInt) || v.is(Value::Kind::kBigInt) || v.is(Value::Kind::kFloat);
}

}  // namespace

uint64_t weight_add(uint64_t a, uint64_t b) {
  const uint64_t sum = a + b;
  return sum < a ? std::numeric_limits<uint64_t>::max() : sum;
}

Value Value::undefined(std::string name) {
  auto object = std::make_shared<UndefinedObject>();
  object->message = "'" + name + "' is undefined";
  return from_object(Kind::kUndefined, std::move(object));
}

Value Value::boolean(bool b) {
  Value v;
  v.kind_ = Kind::kBool;
  v.u_.b = b;
  return v;
}

Value Value::integer(int64_t i) {
  Value v;
  v.kind_ = Kind::kInt;
  v.u_.i = i;
  return v;
}

Value Value::big_integer(std::string digits) {
  Value v = string(std::move(digits), true);
  v.kind_ = Kind::kBigInt;
  return v;
}

Value Value::real(double d) {
  Value v;
  v.kind_ = Kind::kFloat;
  v.u_.d = d;
  return v;
}

Value Value::string(std::string bytes, bool markup) { return string(Text(std::move(bytes), markup)); }

Value Value::string(Text text) {
  auto object = std::make_shared<StringObject>();
  object->n_chars = jinja::count_chars(text.view());
  object->text = std::move(text);
  return from_object(Kind::kString, std::move(object));
}

Value Value::list(std::vector<Value> items) {
  auto object = std::make_shared<ListObject>();
  for (const Value& item : items) {
    object->depth = std::max(object->depth, item.depth() + 1);
    object->weight = weight_add(object->weight, item.weight());
  }
  object->items = std::move(items);
  return from_object(Kind::kList, std::move(object));
}

Value Value::tuple(std::vector<Value> items) {
  Value v = list(std::move(items));
  v.kind_ = Kind::kTuple;
  return v;
}

Value Value::dict(Dict entries) {
  auto object = std::make_shared<DictObject>();
  object->dict = std::move(entries);
  return from_object(Kind::kDict, std::move(object));
}

Value Value::object(std::vector<std::pair<std::string, Value>> entries) {
  Dict dict;
  for (auto& [key, value] : entries) dict.set(std::move(key), std::move(value));
  return Value::dict(std::move(dict));
}

Value Value::from_object(Kind kind, std::shared_ptr<void> object) {
  Value v;
  v.kind_ = kind;
  v.p_ = std::move(object);
  return v;
}

bool Value::as_bool() const {
  MINFER_CHECK(kind_ == Kind::kBool);
  return u_.b;
}

int64_t Value::as_int() const {
  MINFER_CHECK(kind_ == Kind::kInt);
  return u_.i;
}

double Value::as_float() const {
  MINFER_CHECK(kind_ == Kind::kFloat);
  return u_.d;
}

const Text& Value::as_text() const {
  MINFER_CHECK(kind_ == Kind::kString || kind_ == Kind::kBigInt);
  return object<StringObject>()->text;
}

const std::vector<Value>& Value::items() const {
  MINFER_CHECK(is_sequence());
  return object<ListObject>()->items;
}

const Dict& Value::as_dict() const {
  MINFER_CHECK(kind_ == Kind::kDict);
  return object<DictObject>()->dict;
}

const Value* Value::find(std::string_view key) const { return is_dict() ? as_dict().find(key) : nullptr; }

int Value::depth() const {
  switch (kind_) {
    case Kind::kList:
    case Kind::kTuple: return object<ListObject>()->depth;
    case Kind::kDict: return as_dict().depth();
    case Kind::kIterator: return object<IteratorObject>()->depth;
    case Kind::kCallable: return object<CallableObject>()->depth;
    default: return 0;
  }
}

uint64_t Value::weight() const {
  switch (kind_) {
    case Kind::kString:
    case Kind::kBigInt: return 1 + object<StringObject>()->text.size() / 256;
    case Kind::kList:
    case Kind::kTuple: return object<ListObject>()->weight;
    case Kind::kDict: return as_dict().weight();
    case Kind::kIterator: return object<IteratorObject>()->weight;
    case Kind::kCallable: return object<CallableObject>()->weight;
    default: return 1;
  }
}

int64_t Dict::position(const Value& key, size_t hash) const {
  if (index_.empty()) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (equal(entries_[i].first, key)) return static_cast<int64_t>(i);
    }
    return -1;
  }
  for (auto [it, end] = index_.equal_range(hash); it != end; ++it) {
    if (equal(entries_[it->second].first, key)) return it->second;
  }
  return -1;
}

const Value* Dict::find(const Value& key) const {
  const int64_t at = position(key, index_.empty() ? 0 : hash_value(key));
  return at < 0 ? nullptr : &entries_[static_cast<size_t>(at)].second;
}

const Value* Dict::find(std::string_view key) const {
  const auto matches = [&](const Value& k) { return k.is_string() && k.as_string() == key; };
  if (index_.empty()) {
    for (const Entry& entry : entries_) {
      if (matches(entry.first)) return &entry.second;
    }
    return nullptr;
  }
  for (auto [it, end] = index_.equal_range(salted(std::hash<std::string_view>{}(key))); it != end; ++it) {
    if (matches(entries_[it->second].first)) return &entries_[it->second].second;
  }
  return nullptr;
}

void Dict::set(Value key, Value value) {
  const size_t hash = index_.empty() && entries_.size() + 1 < kDictIndexFrom ? 0 : hash_value(key);
  depth_ = std::max({depth_, key.depth() + 1, value.depth() + 1});
  weight_ = weight_add(weight_, weight_add(key.weight(), value.weight()));
  const int64_t at = position(key, hash);
  if (at >= 0) {
    entries_[static_cast<size_t>(at)].second = std::move(value);
    return;
  }
  entries_.emplace_back(std::move(key), std::move(value));
  if (!index_.empty()) {
    index_.emplace(hash, static_cast<uint32_t>(entries_.size() - 1));
  } else if (entries_.size() >= kDictIndexFrom) {
    for (size_t i = 0; i < entries_.size(); ++i)
      index_.emplace(hash_value(entries_[i].first), static_cast<uint32_t>(i));
  }
}

bool equal(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return number_equal(a, b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Value::Kind::kUndefined:
    case Value::Kind::kNone: return true;
    case Value::Kind::kString: return a.as_string() == b.as_string();
    case Value::Kind::kList:
    case Value::Kind::kTuple: {
      if (a.identity() == b.identity()) return true;
      const ListObject& x = *a.object<ListObject>();
      const ListObject& y = *b.object<ListObject>();
      if (x.is_range != y.is_range || x.items.size() != y.items.size()) return false;
      for (size_t i = 0; i < x.items.size(); ++i) {
        if (!equal(x.items[i], y.items[i])) return false;
      }
      return true;
    }
    case Value::Kind::kDict: {
      if (a.identity() == b.identity()) return true;
      if (a.as_dict().size() != b.as_dict().size()) return false;
      for (const auto& [key, value] : a.as_dict().entries()) {
        const Value* other = b.as_dict().find(key);
        if (other == nullptr || !equal(value, *other)) return false;
      }
      return true;
    }
    default: return a.identity() == b.identity();
  }
}

const char* type_name(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::kUndefined: return "Undefined";
    case Value::Kind::kNone: return "NoneType";
    case Value::Kind::kBool: return "bool";
    case Value::Kind::kInt:
    case Value::Kind::kBigInt: return "int";
    case Value::Kind::kFloat: return "float";
    case Value::Kind::kString: return v.object<StringObject>()->safe ? "Markup" : "str";
    case Value::Kind::kList: return v.object<ListObject>()->is_range ? "range" : "list";
    case Value::Kind::kTuple: return "tuple";
    case Value::Kind::kDict: return "dict";
    case Value::Kind::kIterator: return v.object<IteratorObject>()->type_name;
    case Value::Kind::kNamespace: return "Namespace";
    case Value::Kind::kCallable: return v.object<CallableObject>()->type_name();
  }
  return "object";
}

}  // namespace minfer::chat
