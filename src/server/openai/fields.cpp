// Checked access to the fields of a JSON object.
#include "server/openai/fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "chat/json.h"
#include "tokenizer/stream_decode.h"

namespace minfer::openai {

using chat::Value;

std::string shown(const Value& value) {
  constexpr size_t kMost = 60;
  constexpr uint64_t kMostWeight = 1000;  // larger ones are not printed whole only to be cut
  if (value.weight() > kMostWeight) {
    if (value.is_sequence()) return fmt::format("a list of {}", value.items().size());
    if (value.is_dict()) return fmt::format("an object of {} fields", value.as_dict().size());
    if (value.is_string()) return fmt::format("a string of {} bytes", value.as_string().size());
  }
  auto text = chat::dump_json(value);
  if (!text.ok()) return chat::type_name(value);
  if (text->size() <= kMost) return std::move(text).value();
  size_t end = kMost;
  while (end > 0 && (static_cast<uint8_t>((*text)[end]) & 0xc0) == 0x80) --end;  // a whole character
  return text->substr(0, end) + "...";
}

Error bad_field(const std::string& name, const Value& found, std::string_view expected) {
  return make_error(ErrorCode::kInvalidArgument, "{}: found {}, expected {}", name, shown(found), expected);
}

std::optional<int64_t> whole_number(const Value& value) {
  if (value.is(Value::Kind::kInt)) return value.as_int();
  if (!value.is(Value::Kind::kFloat)) return std::nullopt;
  const double d = value.as_float();
  constexpr double kExact = 9007199254740992.0;  // 2^53: up to it every whole number is a double
  if (!(std::fabs(d) <= kExact) || d != std::floor(d)) return std::nullopt;
  return static_cast<int64_t>(d);
}

std::optional<double> number(const Value& value) {
  if (value.is(Value::Kind::kInt)) return static_cast<double>(value.as_int());
  if (value.is(Value::Kind::kFloat) && std::isfinite(value.as_float())) return value.as_float();
  return std::nullopt;
}

std::optional<uint64_t> seed_number(const Value& value) {
  if (value.is(Value::Kind::kBigInt)) {
    const std::string& digits = value.as_string();
    uint64_t v = 0;
    const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), v);
    if (r.ec != std::errc{} || r.ptr != digits.data() + digits.size()) return std::nullopt;
    return v;
  }
  const auto v = whole_number(value);
  if (!v) return std::nullopt;
  return static_cast<uint64_t>(*v);
}

Result<Fields> Fields::of(const Value& object, std::string where) {
  if (!object.is_dict()) {
    const std::string name = where.empty() ? "body" : where.substr(0, where.size() - 1);
    return bad_field(name, object, "an object");
  }
  return Fields(object, std::move(where));
}

const Value* Fields::take(std::string_view name) {
  read_.push_back(name);
  const Value* v = object_->find(name);
  return v == nullptr || v->is_none() ? nullptr : v;
}

Result<bool> Fields::integer(std::string_view name, int32_t& target, int32_t lo, int32_t hi) {
  const Value* v = take(name);
  if (v == nullptr) return false;
  const auto n = whole_number(*v);
  if (!n || *n < lo || *n > hi) return bad_field(path(name), *v, fmt::format("a whole number from {} to {}", lo, hi));
  target = static_cast<int32_t>(*n);
  return true;
}

Result<bool> Fields::real(std::string_view name, float& target) {
  const Value* v = take(name);
  if (v == nullptr) return false;
  const auto n = number(*v);
  if (!n || !std::isfinite(static_cast<float>(*n))) return bad_field(path(name), *v, "a number");
  target = static_cast<float>(*n);
  return true;
}

Result<bool> Fields::boolean(std::string_view name, bool& target) {
  const Value* v = take(name);
  if (v == nullptr) return false;
  if (!v->is(Value::Kind::kBool)) return bad_field(path(name), *v, "true or false");
  target = v->as_bool();
  return true;
}

Result<bool> Fields::text(std::string_view name, std::string& target) {
  const Value* v = take(name);
  if (v == nullptr) return false;
  if (!v->is_string()) return bad_field(path(name), *v, "a string");
  target = v->as_string();
  return true;
}

Status Fields::only(std::string_view name, const Value& neutral, std::string_view why) {
  const Value* v = take(name);
  if (v == nullptr || chat::equal(*v, neutral)) return {};
  return make_error(ErrorCode::kUnsupported, "{}: found {}: {}", path(name), shown(*v), why);
}

Status Fields::finish() const {
  for (const auto& [key, value] : object_->as_dict().entries()) {
    if (!key.is_string()) continue;  // JSON has no others
    const std::string& name = key.as_string();
    if (std::find(read_.begin(), read_.end(), name) != read_.end()) continue;
    std::string known;
    for (const auto& r : read_) known += (known.empty() ? "" : ", ") + std::string(r);
    return make_error(ErrorCode::kInvalidArgument, "{}: unknown field, expected one of {}",
                      where_ + shown(Value::string(name)), known);
  }
  return {};
}

}  // namespace minfer::openai
