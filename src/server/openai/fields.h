// Fields: reads the fields of a JSON object one by one, each checked, and refuses by name those that nobody asked for.
// null counts as absent, as OpenAI's clients send it.
// Errors:  "<where>field: found ..., expected ..."; found values are shown shortened.
// Threads: one owner; the object must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "chat/value.h"

namespace minfer::openai {

// A value as JSON, shortened, for messages.
std::string shown(const chat::Value& value);
Error bad_field(const std::string& name, const chat::Value& found, std::string_view expected);

// A whole number, also one that is written as 5.0; nullopt: it is none, or beyond int64.
std::optional<int64_t> whole_number(const chat::Value& value);
std::optional<double> number(const chat::Value& value);
// 0 to 2^64 - 1; a negative number is taken modulo 2^64. nullopt: neither.
std::optional<uint64_t> seed_number(const chat::Value& value);

class Fields {
 public:
  // Errors: `object` is no object.
  static Result<Fields> of(const chat::Value& object, std::string where);

  // The field's value, nullptr where it is absent or null; it counts as read.
  const chat::Value* take(std::string_view name);

  // Each leaves `target` as it is where the field is absent. True: it is there.
  Result<bool> integer(std::string_view name, int32_t& target, int32_t lo, int32_t hi);
  Result<bool> real(std::string_view name, float& target);  // finite, and finite as f32
  Result<bool> boolean(std::string_view name, bool& target);
  Result<bool> text(std::string_view name, std::string& target);
  // A field that means nothing here unless it says what is done anyway.
  Status only(std::string_view name, const chat::Value& neutral, std::string_view why);

  std::string path(std::string_view name) const { return where_ + std::string(name); }
  // Errors: the first field that was not read, with those that were.
  Status finish() const;

 private:
  Fields(const chat::Value& object, std::string where) : object_(&object), where_(std::move(where)) {}

  const chat::Value* object_;
  std::string where_;
  std::vector<std::string_view> read_;  // names are literals, or outlive this
};

}  // namespace minfer::openai
