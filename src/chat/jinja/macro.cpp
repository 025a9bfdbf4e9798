// Binding a macro's arguments and running its body.
#include "chat/jinja/macro.h"

#include "chat/jinja/interp_scope.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"

namespace minfer::chat::jinja {

Value Interp::make_macro(const MacroDef& def) {
  for (Scope* s = scope_; s != nullptr && !s->captured; s = s->parent) s->captured = true;
  return callable(std::make_shared<Macro>(def, scope_));
}

Value Macro::call(Interp& in, const Args& args) {
  const size_t n_params = def_.params.size();
  std::vector<std::optional<Value>> bound(n_params);
  for (size_t i = 0; i < n_params && i < args.positional.size(); ++i) bound[i] = args.positional[i];
  Dict kwargs;
  Value caller = in.undefined("No caller defined");
  bool caller_bound = false;
  for (size_t i = 0; i < n_params; ++i) caller_bound |= def_.params[i] == "caller";
  for (const auto& [name, value] : args.named) {
    in.step();
    bool taken = false;
    for (size_t i = args.positional.size(); i < n_params && !taken; ++i) {
      if (def_.params[i] == name) {
        bound[i] = value;
        taken = true;
      }
    }
    if (taken) continue;
    if (name == "caller" && def_.uses_caller && !caller_bound) {
      caller = value;
    } else if (def_.uses_kwargs) {
      kwargs.set(Value::string(name, true), value);
    } else if (name == "caller") {
      raise_error("macro '{}' was invoked with two values for the special caller argument. This is most likely a bug.",
                  def_.name);
    } else {
      raise_error("macro '{}' takes no keyword argument '{}'", def_.name, name);
    }
  }
  if (args.positional.size() > n_params && !def_.uses_varargs) {
    raise_error("macro '{}' takes not more than {} argument(s)", def_.name, n_params);
  }
  Text out = in.captured([&] {
    in.with_scope(scope_, [&] {
      if (def_.uses_caller && !caller_bound) in.scope_->set("caller", caller);
      if (def_.uses_kwargs) in.scope_->set("kwargs", in.dict(std::move(kwargs)));
      if (def_.uses_varargs) {
        std::vector<Value> rest;
        for (size_t i = n_params; i < args.positional.size(); ++i) rest.push_back(args.positional[i]);
        in.scope_->set("varargs", in.tuple(std::move(rest)));
      }
      const size_t first_default = n_params - def_.defaults.size();
      for (size_t i = 0; i < n_params; ++i) {
        in.scope_->set(
            def_.params[i],
            bound[i] ? *bound[i] : in.undefined(fmt::format("parameter '{}' was not provided", def_.params[i])));
      }
      for (size_t i = first_default; i < n_params; ++i) {  // a default may use the parameters before it
        if (!bound[i]) in.scope_->set(def_.params[i], in.eval(*def_.defaults[i - first_default]));
      }
      in.enter(def_.body);
    });
  });
  return in.text(std::move(out));
}

std::optional<Value> Macro::attribute(Interp& in, std::string_view name) {
  if (name == "name") return def_.anonymous ? Value::none() : in.str(def_.name);
  if (name == "arguments") {
    std::vector<Value> names;
    for (const std::string& p : def_.params) names.push_back(in.str(p));
    return in.tuple(std::move(names));
  }
  if (name == "catch_kwargs") return Value::boolean(def_.uses_kwargs);
  if (name == "catch_varargs") return Value::boolean(def_.uses_varargs);
  if (name == "caller") return Value::boolean(def_.uses_caller);
  return std::nullopt;
}

std::string Macro::repr(Interp&) {
  return def_.anonymous ? "<Macro anonymous>" : "<Macro " + repr_string(def_.name) + ">";
}

}  // namespace minfer::chat::jinja
