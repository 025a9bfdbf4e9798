// Global functions: range, dict, namespace, cycler, joiner, and Hugging Face's raise_exception and strftime_now.
#include "base/checked.h"
#include "chat/jinja/builtins.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

namespace {

// The sandbox's limit on range().
constexpr int64_t kMaxRange = 100000;

class Function : public CallableObject {
 public:
  Function(std::string_view name, FunctionFn function) : name_(name), function_(function) {}
  Value call(Interp& in, const Args& args) override { return function_(in, args); }
  std::string repr(Interp&) override { return fmt::format("<function {}>", name_); }

 private:
  std::string_view name_;  // of the table below
  FunctionFn function_;
};

Value range(Interp& in, const Args& a) {
  const Params p("range", a, {"start", "stop", "step"}, 1);
  int64_t start = 0, stop = p.integer(0, 0);
  if (p.has(1)) {
    start = stop;
    stop = p.integer(1, 0);
  }
  const int64_t step = p.integer(2, 1);
  if (step == 0) raise_error("range() arg 3 must not be zero");
  __int128 count = 0;
  if (step > 0 && stop > start) count = (static_cast<__int128>(stop) - start - 1) / step + 1;
  if (step < 0 && stop < start) count = (static_cast<__int128>(start) - stop - 1) / -static_cast<__int128>(step) + 1;
  if (count > kMaxRange) {
    raise_error("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange);
  }
  in.step(static_cast<uint64_t>(count));
  std::vector<Value> items;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) items.push_back(Value::integer(start + i * step));
  Value v = in.list(std::move(items));
  auto* object = v.object<ListObject>();
  object->is_range = true;
  object->range = {start, stop, step};
  return v;
}

// dict(mapping or pairs, key=value, ...)
Dict make_dict(Interp& in, const char* name, const Args& a) {
  if (a.positional.size() > 1) raise_error("{} expected at most 1 argument, got {}", name, a.positional.size());
  Dict d;
  if (!a.positional.empty()) {
    const Value& from = a.positional[0];
    refuse_undefined(from);
    in.step(from.weight());
    if (from.is_dict()) {
      d = from.as_dict();
    } else {
      for (const Value& pair : iterate(in, from)) {
        const std::vector<Value> parts = iterate(in, pair);
        if (parts.size() != 2)
          raise_error("dictionary update sequence element has length {}; 2 is required", parts.size());
        require_hashable(parts[0]);
        d.set(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [key, value] : a.named) d.set(Value::string(key, true), value);
  return d;
}

Value dict(Interp& in, const Args& a) { return in.dict(make_dict(in, "dict", a)); }

Value name_space(Interp& in, const Args& a) { return in.name_space(make_dict(in, "namespace", a)); }

Value raise_exception(Interp& in, const Args& a) {
  const Params p("raise_exception", a, {"message"}, 1);
  throw Raised{ErrorCode::kInvalidArgument, to_text(in, p[0]).bytes(), in.pos(), true};
}

Value lipsum(Interp&, const Args&) {
  throw Raised{ErrorCode::kUnsupported, "lipsum() makes random text, which no prompt should hold", Pos{}};
}

Value strftime_now(Interp& in, const Args& a) {
  return strftime_value(in, Params("strftime_now", a, {"format"}, 1)[0]);
}

// cycler("odd", "even"): next(), current, reset().
class Cycler : public CallableObject, public std::enable_shared_from_this<Cycler> {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {
    for (const Value& item : items_) {
      depth = std::max(depth, item.depth() + 1);
      weight = weight_add(weight, item.weight());
    }
  }
  Value call(Interp&, const Args&) override { raise_error("'Cycler' object is not callable"); }
  std::optional<Value> attribute(Interp& in, std::string_view name) override {
    if (name == "current") return items_[at_];
    if (name == "next") return in.callable(std::make_shared<Method>(shared_from_this(), true));
    if (name == "reset") return in.callable(std::make_shared<Method>(shared_from_this(), false));
    return std::nullopt;
  }
  std::string repr(Interp&) override { return "<Cycler>"; }
  const char* type_name() const override { return "Cycler"; }

 private:
  class Method : public CallableObject {
   public:
    Method(std::shared_ptr<Cycler> owner, bool next) : owner_(std::move(owner)), next_(next) {
      depth = owner_->depth + 1;
    }
    Value call(Interp&, const Args& a) override {
      Params(next_ ? "next" : "reset", a, {});
      const size_t at = owner_->at_;
      owner_->at_ = next_ ? (at + 1) % owner_->items_.size() : 0;
      return next_ ? owner_->items_[at] : Value::none();
    }
    std::string repr(Interp&) override { return "<bound method Cycler>"; }
    const char* type_name() const override { return "method"; }

   private:
    std::shared_ptr<Cycler> owner_;
    bool next_;
  };
  std::vector<Value> items_;
  size_t at_ = 0;
};

Value cycler(Interp& in, const Args& a) {
  if (!a.named.empty()) raise_error("cycler() takes no keyword arguments");
  if (a.positional.empty()) raise_error("at least one item has to be provided");
  return in.callable(std::make_shared<Cycler>(a.positional));
}

// joiner(", "): empty at the first call, the separator afterwards.
class Joiner : public CallableObject {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  Value call(Interp& in, const Args& a) override {
    Params("joiner", a, {});
    if (std::exchange(used_, true)) return separator_;
    return in.str("");
  }
  std::string repr(Interp&) override { return "<Joiner>"; }
  const char* type_name() const override { return "Joiner"; }

 private:
  Value separator_;
  bool used_ = false;
};

Value joiner(Interp& in, const Args& a) {
  const Params p("joiner", a, {"sep"});
  Value separator = p.has(0) ? p[0] : in.str(", ");
  if (!separator.is_string()) separator = in.text(to_text(in, separator));
  return in.callable(std::make_shared<Joiner>(std::move(separator)));
}

constexpr Named<FunctionFn> kFunctions[] = {
    {"cycler", cycler},        {"dict", dict},
    {"joiner", joiner},        {"lipsum", lipsum},
    {"namespace", name_space}, {"raise_exception", raise_exception},
    {"range", range},          {"strftime_now", strftime_now},
};

}  // namespace

std::optional<Value> find_global(Interp& in, std::string_view name) {
  for (const auto& f : kFunctions) {
    if (f.name == name) return in.callable(std::make_shared<Function>(f.name, f.function));
  }
  return std::nullopt;
}

}  // namespace minfer::chat::jinja
