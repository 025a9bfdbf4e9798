// JSON through nlohmann's event parser (it does not recurse) and the engine's own writer.
#include "chat/json.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "chat/jinja/interp.h"
#include "chat/jinja/print.h"

namespace minfer::chat {

namespace {

using Json = nlohmann::json;

class Builder {
 public:
  explicit Builder(TwiceSaid twice) : twice_(twice) {}
  bool null() { return put(Value::none()); }
  bool boolean(bool b) { return put(Value::boolean(b)); }
  bool number_integer(int64_t i) { return put(Value::integer(i)); }
  bool number_unsigned(uint64_t u) {
    if (u > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return put(Value::big_integer(std::to_string(u)));
    return put(Value::integer(static_cast<int64_t>(u)));
  }
  bool number_float(double d, const std::string& text) {
    return put(text.find_first_of(".eE") == text.npos ? Value::big_integer(text) : Value::real(d));
  }
  bool string(std::string& s) { return put(Value::string(std::move(s))); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(size_t) { return open(true); }
  bool start_array(size_t) { return open(false); }
  bool key(std::string& k) {
    if (twice_ == TwiceSaid::kRefuse && stack_.back().dict.find(std::string_view(k)) != nullptr) {
      constexpr size_t kMost = 80;
      error_ = fmt::format("the key '{}' occurs twice in an object", k.size() <= kMost ? k : "...");
      return false;
    }
    stack_.back().key = std::move(k);
    return true;
  }
  bool end_object() { return close(Value::dict(std::move(stack_.back().dict))); }
  bool end_array() { return close(Value::list(std::move(stack_.back().items))); }
  bool parse_error(size_t at, const std::string&, const Json::exception& e) {
    std::string what = e.what();  // "[json.exception...] parse error at line 1, column 2: ..."
    const size_t colon = what.find(": ");
    error_ = fmt::format("byte {}: {}", at, colon == what.npos ? what : what.substr(colon + 2));
    return false;
  }

  Value take() { return std::move(root_); }
  const std::string& error() const { return error_; }

 private:
  struct Frame {
    bool is_object;
    Dict dict;
    std::vector<Value> items;
    std::string key;
  };

  bool put(Value v) {
    if (stack_.empty()) {
      root_ = std::move(v);
    } else if (stack_.back().is_object) {
      stack_.back().dict.set(std::move(stack_.back().key), std::move(v));
    } else {
      stack_.back().items.push_back(std::move(v));
    }
    return true;
  }
  bool open(bool is_object) {
    if (stack_.size() >= static_cast<size_t>(kMaxValueDepth)) {
      error_ = fmt::format("nested deeper than {} levels", kMaxValueDepth);
      return false;
    }
    stack_.push_back({is_object, {}, {}, {}});
    return true;
  }
  bool close(Value v) {
    stack_.pop_back();
    return put(std::move(v));
  }

  const TwiceSaid twice_;
  std::vector<Frame> stack_;
  Value root_;
  std::string error_;
};

}  // namespace

Result<Value> parse_json(std::string_view json, TwiceSaid twice) {
  // The parser takes a NUL for the end of the text; JSON has no place for one.
  if (const size_t nul = json.find('\0'); nul != json.npos) {
    return make_error(ErrorCode::kCorrupt, "[json] byte {}: found a NUL byte", nul + 1);
  }
  Builder builder(twice);
  bool ok = false;
  try {
    ok = Json::sax_parse(json.begin(), json.end(), &builder);
  } catch (const std::exception& e) {  // a number outside the range of a float
    return make_error(ErrorCode::kCorrupt, "[json] {}", e.what());
  }
  if (!ok) return make_error(ErrorCode::kCorrupt, "[json] {}", builder.error());
  return builder.take();
}

Result<std::string> dump_json(const Value& v) {
  if (v.depth() > kMaxValueDepth) {
    return make_error(ErrorCode::kInvalidArgument, "[json] value is nested deeper than {} levels", kMaxValueDepth);
  }
  try {
    jinja::Interp in(UINT64_MAX, UINT64_MAX, std::tm{});
    return jinja::to_json(in, v, {}).bytes();
  } catch (const jinja::Raised& raised) {
    return make_error(raised.code, "[json] {}", raised.message);
  }
}

}  // namespace minfer::chat
