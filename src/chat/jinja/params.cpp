// Argument binding and the callables made from plain functions.
#include "chat/jinja/builtins.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

Params::Params(const char* function, const Args& args, std::initializer_list<const char*> names, size_t required)
    : function_(function), values_(names.size(), nullptr) {
  if (args.positional.size() > names.size()) {
    raise_error("{}() takes at most {} arguments ({} given)", function, names.size(), args.positional.size());
  }
  for (size_t i = 0; i < args.positional.size(); ++i) values_[i] = &args.positional[i];
  for (const auto& [name, value] : args.named) {
    size_t i = 0;
    while (i < names.size() && name != names.begin()[i]) ++i;
    if (i == names.size()) raise_error("{}() got an unexpected keyword argument '{}'", function, name);
    if (values_[i] != nullptr) raise_error("{}() got multiple values for argument '{}'", function, name);
    values_[i] = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) {
      raise_error("{}() missing a required argument: '{}'", function, names.begin()[i]);
    }
  }
}

int64_t Params::integer(size_t i, int64_t fallback) const {
  if (!has(i)) return fallback;
  refuse_undefined(*values_[i]);
  if (values_[i]->is(Kind::kBigInt)) raise_error("Python int too large to convert to C ssize_t");
  if (!is_int(*values_[i])) {
    raise_error("{}(): '{}' object cannot be interpreted as an integer", function_, type_name(*values_[i]));
  }
  return int_of(*values_[i]);
}

bool Params::flag(size_t i, bool fallback) const { return has(i) ? truthy(*values_[i]) : fallback; }

const Text& Params::text(size_t i) const {
  refuse_undefined(*values_[i]);
  if (!values_[i]->is_string()) raise_error("{}() argument must be str, not {}", function_, type_name(*values_[i]));
  return values_[i]->as_text();
}

namespace {

class BoundMethod : public CallableObject {
 public:
  BoundMethod(Value self, std::string_view name, MethodFn function)
      : self_(std::move(self)), name_(name), function_(function) {
    depth = self_.depth() + 1;
    weight = self_.weight();
  }
  Value call(Interp& in, const Args& args) override { return function_(in, self_, args); }
  std::string repr(Interp&) override {
    return fmt::format("<built-in method {} of {} object>", name_, minfer::chat::type_name(self_));
  }
  const char* type_name() const override { return "builtin_function_or_method"; }

 private:
  Value self_;
  std::string name_;
  MethodFn function_;
};

}  // namespace

Value bound_method(Interp& in, const Value& self, std::string_view name, MethodFn function) {
  return in.callable(std::make_shared<BoundMethod>(self, name, function));
}

Value attribute_path(Interp& in, const Value& object, const Value& path, const Value& fallback) {
  const auto get = [&](const Value& from, const Value& key) {
    Value v = get_item(in, from, key);
    return v.is_undefined() && !fallback.is_none() ? fallback : v;
  };
  if (!path.is_string()) return get(object, path);
  Value current = object;
  std::string_view rest = path.as_string();
  for (;;) {
    in.step();
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool digits = !part.empty() && part.find_first_not_of("0123456789") == part.npos && part.size() < 19;
    current = get(current, digits ? Value::integer(std::stoll(std::string(part))) : in.str(std::string(part)));
    if (dot == rest.npos) return current;
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace minfer::chat::jinja
