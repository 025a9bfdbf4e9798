// Budgets, values, scopes and expressions.
#include "chat/jinja/interp.h"

#include "chat/jinja/builtins.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

Value* Scope::find(std::string_view name) {
  for (auto& [n, v] : names) {
    if (n == name) return &v;
  }
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  if (Value* known = find(name)) {
    *known = std::move(value);
  } else {
    names.emplace_back(name, std::move(value));
  }
}

Interp::Interp(uint64_t max_steps, uint64_t max_bytes, const std::tm& now)
    : max_steps_(max_steps), max_bytes_(max_bytes), steps_left_(max_steps), bytes_left_(max_bytes), now_(now) {
  globals_ = open_scope(nullptr);
}

// Values may form chains through namespaces and loops of any length; each is emptied while all are still held, so that
// no destructor has more to do than one bounded value.
Interp::~Interp() {
  for (Scope& scope : pool_) scope.names.clear();
  for (Value& v : kept_) {
    if (v.is(Kind::kNamespace)) {
      v.object<NamespaceObject>()->attributes = Dict();
    } else {
      v.object<CallableObject>()->release();
    }
  }
}

void Interp::out_of(const char* what) const {
  const bool steps = what[0] == 's';
  throw Raised{
      ErrorCode::kResourceExhausted,
      fmt::format("the template needs more than {} {}, the limit of one render", steps ? max_steps_ : max_bytes_, what),
      pos_};
}

void Interp::too_deep() const {
  throw Raised{ErrorCode::kResourceExhausted,
               fmt::format("evaluation is nested more than {} levels deep", kMaxEvalDepth), pos_};
}

namespace {

void check_depth(const Value& v) {
  if (v.depth() > kMaxValueDepth) {
    throw Raised{ErrorCode::kResourceExhausted,
                 fmt::format("a value is nested more than {} levels deep", kMaxValueDepth), Pos{}};
  }
}

}  // namespace

Value Interp::text(Text t, bool safe) {
  charge(t.size() + sizeof(StringObject));
  Value v = Value::string(std::move(t));
  v.object<StringObject>()->safe = safe;
  return v;
}

Value Interp::list(std::vector<Value> items) {
  charge(items.size() * sizeof(Value) + sizeof(ListObject));
  Value v = Value::list(std::move(items));
  check_depth(v);
  return v;
}

Value Interp::tuple(std::vector<Value> items) {
  charge(items.size() * sizeof(Value) + sizeof(ListObject));
  Value v = Value::tuple(std::move(items));
  check_depth(v);
  return v;
}

Value Interp::dict(Dict d) {
  charge(d.size() * sizeof(Dict::Entry) * 2 + sizeof(DictObject));
  Value v = Value::dict(std::move(d));
  check_depth(v);
  return v;
}

Value Interp::iterator(std::vector<Value> items, const char* type_name, bool view) {
  charge(items.size() * sizeof(Value) + sizeof(IteratorObject));
  auto object = std::make_shared<IteratorObject>();
  for (const Value& item : items) {
    object->depth = std::max(object->depth, item.depth() + 1);
    object->weight = weight_add(object->weight, item.weight());
  }
  object->items = std::move(items);
  object->type_name = type_name;
  object->view = view;
  Value v = Value::from_object(Kind::kIterator, std::move(object));
  check_depth(v);
  return v;
}

Value Interp::name_space(Dict attributes) {
  charge(sizeof(NamespaceObject) + attributes.size() * sizeof(Dict::Entry));
  auto object = std::make_shared<NamespaceObject>();
  object->attributes = std::move(attributes);
  Value v = Value::from_object(Kind::kNamespace, std::move(object));
  keep(v);
  return v;
}

Value Interp::callable(std::shared_ptr<CallableObject> object) {
  charge(sizeof(CallableObject) + 64);
  Value v = Value::from_object(Kind::kCallable, std::move(object));
  check_depth(v);
  return v;
}

Value Interp::undefined(std::string message) {
  charge(message.size() + sizeof(UndefinedObject));
  auto object = std::make_shared<UndefinedObject>();
  object->message = std::move(message);
  return Value::from_object(Kind::kUndefined, std::move(object));
}

Scope* Interp::open_scope(Scope* parent) {
  Scope* scope;
  if (free_.empty()) {
    charge(sizeof(Scope));
    scope = &pool_.emplace_back();
  } else {
    scope = free_.back();
    free_.pop_back();
  }
  scope->parent = parent;
  return scope;
}

void Interp::close_scope(Scope* scope) {
  if (scope->captured) return;
  scope->names.clear();
  free_.push_back(scope);
}

Value Interp::lookup(std::string_view name) {
  for (Scope* s = scope_; s != nullptr; s = s->parent) {
    if (Value* v = s->find(name)) return *v;
  }
  if (auto global = find_global(*this, name)) return *global;
  return undefined(fmt::format("'{}' is undefined", name));
}

Args Interp::eval_args(const CallArgs& args) {
  Args out;
  out.positional.reserve(args.positional.size());
  for (const ExprPtr& e : args.positional) out.positional.push_back(eval(*e));
  for (const auto& [name, e] : args.named) out.named.emplace_back(name, eval(*e));
  if (args.star) {
    for (Value& v : iterate(*this, eval(*args.star))) out.positional.push_back(std::move(v));
  }
  if (args.star_star) {
    const Value more = eval(*args.star_star);
    if (!more.is_dict()) raise_error("argument after ** must be a mapping, not {}", type_name(more));
    for (const auto& [key, value] : more.as_dict().entries()) {
      if (!key.is_string()) raise_error("keywords must be strings");
      for (const auto& [known, unused] : out.named) {
        if (known == key.as_string()) raise_error("got multiple values for keyword argument '{}'", known);
      }
      step(out.named.size());
      out.named.emplace_back(key.as_string(), value);
    }
  }
  return out;
}

Value Interp::call(const Value& callee, const Args& args) {
  refuse_undefined(callee);
  if (!callee.is(Kind::kCallable)) raise_error("'{}' object is not callable", type_name(callee));
  const Level level(*this);
  step();
  const Value held = callee;  // the callee may be reassigned while it runs
  return held.object<CallableObject>()->call(*this, args);
}

Value Interp::apply_filter(std::string_view name, const Value& input, const Args& args) {
  const FilterFn f = find_filter(name);
  if (f == nullptr) raise_error("No filter named '{}' found.", name);
  step();
  return f(*this, input, args);
}

bool Interp::apply_test(std::string_view name, const Value& input, const Args& args) {
  const TestFn f = find_test(name);
  if (f == nullptr) raise_error("No test named '{}' found.", name);
  step();
  return f(*this, input, args);
}

Value Interp::eval_call(const Call& e) {
  const Value callee = eval(*e.callee);
  const Args args = eval_args(e.args);
  pos_ = e.pos;
  return call(callee, args);
}

namespace {

// Whether Jinja computes an expression while it compiles: it names nothing, calls nothing and uses no filter that asks
// for the context. What fails then is looked up as an item, which gives undefined where a slice would raise.
bool folds(const Expr& e) {
  if (e.kind == ExprKind::kName || e.kind == ExprKind::kCall) return false;
  if (e.kind == ExprKind::kFilter) {
    const auto& filter = static_cast<const Filter&>(e);
    for (std::string_view name : {"map", "select", "reject", "selectattr", "rejectattr", "random"}) {
      if (filter.name == name) return false;
    }
    if (!filter.operand) return false;
  }
  bool all = true;
  for_each_child(e, [&](const Expr& child) { all = all && folds(child); });
  return all;
}

}  // namespace

Value Interp::eval_item(const Item& e) {
  const Value object = eval(*e.object);
  if (e.index->kind != ExprKind::kSlice) {
    const Value key = eval(*e.index);
    pos_ = e.pos;
    return get_item(*this, object, key);
  }
  const auto& s = static_cast<const Slice&>(*e.index);
  const auto bound = [&](const ExprPtr& b) { return b ? eval(*b) : Value::none(); };
  const Value start = bound(s.start), stop = bound(s.stop), by = bound(s.step);
  pos_ = e.pos;
  if (output_ == nullptr || !folds(*output_)) return slice(*this, object, start, stop, by);
  try {
    return slice(*this, object, start, stop, by);
  } catch (const Raised& raised) {
    if (raised.code != ErrorCode::kInvalidArgument || raised.message == kZeroStep || object.is_undefined()) throw;
  }
  Text bounds("slice(", true);
  for (const Value* bound : {&start, &stop, &by}) {
    if (bound != &start) bounds.append(", ", true);
    append_repr(*this, bounds, *bound);
  }
  return undefined(fmt::format("{} has no element {})", object_name(object), bounds.bytes()));
}

Value Interp::eval_filter(const Filter& e, const Value* block_text) {
  const Level level(*this);
  Value input;
  if (!e.operand) {
    input = *block_text;
  } else if (e.operand->kind == ExprKind::kFilter) {
    input = eval_filter(static_cast<const Filter&>(*e.operand), block_text);
  } else {
    input = eval(*e.operand);
  }
  const Args args = eval_args(e.args);
  pos_ = e.pos;
  return apply_filter(e.name, input, args);
}

Value Interp::eval_compare(const Compare& e) {
  Value left = eval(*e.first);
  for (const auto& [op, operand] : e.rest) {
    Value right = eval(*operand);
    pos_ = e.pos;
    if (!jinja::compare(*this, op, left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interp::eval(const Expr& e) {
  const Level level(*this);
  step();
  switch (e.kind) {
    case ExprKind::kLiteral: return static_cast<const Literal&>(e).value;
    case ExprKind::kName: return lookup(static_cast<const Name&>(e).name);
    case ExprKind::kList:
    case ExprKind::kTuple: {
      std::vector<Value> items;
      for (const ExprPtr& item : static_cast<const Sequence&>(e).items) items.push_back(eval(*item));
      return e.kind == ExprKind::kTuple ? tuple(std::move(items)) : list(std::move(items));
    }
    case ExprKind::kDict: {
      Dict d;
      for (const auto& [key, value] : static_cast<const DictLiteral&>(e).entries) {
        Value k = eval(*key);
        require_hashable(k);
        d.set(std::move(k), eval(*value));
      }
      return dict(std::move(d));
    }
    case ExprKind::kUnary: {
      const auto& u = static_cast<const Unary&>(e);
      const Value v = eval(*u.operand);
      pos_ = e.pos;
      return u.op == UnaryOp::kNot ? Value::boolean(!truthy(v)) : negate(*this, u.op, v);
    }
    case ExprKind::kBinary: {
      const auto& b = static_cast<const Binary&>(e);
      const Value left = eval(*b.left);
      const Value right = eval(*b.right);
      pos_ = e.pos;
      return arithmetic(*this, b.op, left, right);
    }
    case ExprKind::kConcat: {
      Text out;
      for (const ExprPtr& item : static_cast<const Concat&>(e).items) {
        const Value v = eval(*item);
        const Text piece = to_text(*this, v);
        charge(piece.size());
        out.append(piece);
      }
      return text(std::move(out));
    }
    case ExprKind::kCompare: return eval_compare(static_cast<const Compare&>(e));
    case ExprKind::kLogic: {
      const auto& l = static_cast<const Logic&>(e);
      Value left = eval(*l.left);
      return truthy(left) == l.is_and ? eval(*l.right) : left;
    }
    case ExprKind::kCond: {
      const auto& c = static_cast<const Cond&>(e);
      if (truthy(eval(*c.test))) return eval(*c.then);
      if (c.otherwise) return eval(*c.otherwise);
      return undefined(fmt::format(
          "the inline if-expression on line {} evaluated to false and no else section was defined.", e.pos.line));
    }
    case ExprKind::kAttribute: {
      const auto& a = static_cast<const Attribute&>(e);
      const Value object = eval(*a.object);
      pos_ = e.pos;
      return get_attribute(*this, object, a.name);
    }
    case ExprKind::kItem: return eval_item(static_cast<const Item&>(e));
    case ExprKind::kCall: return eval_call(static_cast<const Call&>(e));
    case ExprKind::kFilter: return eval_filter(static_cast<const Filter&>(e), nullptr);
    case ExprKind::kTest: {
      const auto& t = static_cast<const Test&>(e);
      const Value operand = eval(*t.operand);
      const Args args = eval_args(t.args);
      pos_ = e.pos;
      return Value::boolean(apply_test(t.name, operand, args));
    }
    case ExprKind::kSlice: break;  // only inside an Item
  }
  return Value::none();
}

}  // namespace minfer::chat::jinja
