// JSON text <-> Value, key order kept. Numbers: an integer beyond int64 keeps its digits, 1.0 stays a float.
// Errors:  the byte offset and what was expected; nesting deeper than kMaxValueDepth and NaN/Infinity are refused.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "chat/value.h"

namespace minfer::chat {

// Of a key that occurs twice in an object: the last one counts, as in Python, or the text is refused.
enum class TwiceSaid : uint8_t { kLastCounts, kRefuse };
Result<Value> parse_json(std::string_view json, TwiceSaid twice = TwiceSaid::kLastCounts);

// As Python's json.dumps(v, ensure_ascii=False): separators ", " and ": ". Fails on what JSON has no word for.
Result<std::string> dump_json(const Value& v);

}  // namespace minfer::chat
