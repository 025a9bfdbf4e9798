// Statements.
#include "chat/jinja/builtins.h"
#include "chat/jinja/interp_scope.h"
#include "chat/jinja/macro.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

Text Interp::run(const Body& body) {
  return captured([&] { with_scope(globals_, [&] { enter(body); }); });
}

void Interp::write(const Text& t) {
  charge(t.size());
  out_->append(t);
}

void Interp::write_markup(std::string_view s) {
  charge(s.size());
  out_->append(s, true);
}

Flow Interp::exec(const Body& body) {
  const Level level(*this);
  for (const auto& s : body.statements) {
    const Flow flow = exec(*s);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Flow Interp::enter(const Body& body) {
  for (const std::string& name : body.hidden) scope_->set(name, undefined(fmt::format("'{}' is undefined", name)));
  return exec(body);
}

Flow Interp::exec(const Stmt& s) {
  step();
  switch (s.kind) {
    case StmtKind::kText: write_markup(static_cast<const TextStmt&>(s).text); break;
    case StmtKind::kOutput: {
      output_ = static_cast<const OutputStmt&>(s).expr.get();
      const Value v = eval(*output_);
      output_ = nullptr;
      if (v.is_string()) {
        write(v.as_text());
      } else {
        write(to_text(*this, v));
      }
      break;
    }
    case StmtKind::kIf: return exec_if(static_cast<const IfStmt&>(s));
    case StmtKind::kFor: {
      const auto& loop = static_cast<const ForStmt&>(s);
      const Value source = eval(*loop.iterable);
      pos_ = s.pos;
      return exec_for(loop, source, 1, scope_);
    }
    case StmtKind::kSet: {
      const auto& set = static_cast<const SetStmt&>(s);
      const Value v = eval(*set.value);
      assign(set.target, v);
      break;
    }
    case StmtKind::kSetBlock: return exec_set_block(static_cast<const SetBlockStmt&>(s));
    case StmtKind::kWith: return exec_with(static_cast<const WithStmt&>(s));
    case StmtKind::kMacro: {
      const MacroDef& def = static_cast<const MacroStmt&>(s).def;
      scope_->set(def.name, make_macro(def));
      break;
    }
    case StmtKind::kCallBlock: exec_call_block(static_cast<const CallBlockStmt&>(s)); break;
    case StmtKind::kFilterBlock: return exec_filter_block(static_cast<const FilterBlockStmt&>(s));
    case StmtKind::kScope: return with_scope(scope_, [&] { return enter(static_cast<const ScopeStmt&>(s).body); });
    case StmtKind::kBreak: return Flow::kBreak;
    case StmtKind::kContinue: return Flow::kContinue;
  }
  return Flow::kNext;
}

Flow Interp::exec_if(const IfStmt& s) {
  for (const auto& [condition, body] : s.branches) {
    if (truthy(eval(*condition))) return exec(body);
  }
  return exec(s.otherwise);
}

// The values are all computed outside the new scope.
Flow Interp::exec_with(const WithStmt& s) {
  std::vector<Value> values;
  for (const auto& [target, e] : s.bindings) values.push_back(eval(*e));
  return with_scope(scope_, [&] {
    for (size_t i = 0; i < values.size(); ++i) assign(s.bindings[i].first, values[i]);
    return enter(s.body);
  });
}

Flow Interp::exec_set_block(const SetBlockStmt& s) {
  Flow flow = Flow::kNext;
  Text body = captured([&] { flow = with_scope(scope_, [&] { return enter(s.body); }); });
  if (flow != Flow::kNext) return flow;  // break or continue leaves the block; nothing is assigned
  Value v = text(std::move(body));
  if (s.filter) v = eval_filter(static_cast<const Filter&>(*s.filter), &v);
  assign(s.target, v);
  return flow;
}

Flow Interp::exec_filter_block(const FilterBlockStmt& s) {
  Flow flow = Flow::kNext;
  Text body = captured([&] { flow = with_scope(scope_, [&] { return enter(s.body); }); });
  if (flow != Flow::kNext) return flow;
  const Value v = text(std::move(body));
  const Value out = eval_filter(static_cast<const Filter&>(*s.filter), &v);
  if (!out.is_string()) raise_error("sequence item 0: expected str instance, {} found", type_name(out));  // not printed
  write(out.as_text());
  return flow;
}

void Interp::exec_call_block(const CallBlockStmt& s) {
  const auto& call_expr = static_cast<const Call&>(*s.call);
  const Value callee = eval(*call_expr.callee);
  Args args = eval_args(call_expr.args);
  args.named.emplace_back("caller", make_macro(s.def));
  pos_ = s.pos;
  write(to_text(*this, call(callee, args)));
}

void Interp::assign(const Target& target, const Value& value) {
  const Level level(*this);
  if (target.is_tuple) {
    if (!iterable(value)) raise_error("cannot unpack non-iterable {} object", type_name(value));
    const std::vector<Value> parts = iterate(*this, value);
    if (parts.size() > target.items.size()) {
      raise_error("too many values to unpack (expected {})", target.items.size());
    }
    if (parts.size() < target.items.size()) {
      raise_error("not enough values to unpack (expected {}, got {})", target.items.size(), parts.size());
    }
    for (size_t i = 0; i < parts.size(); ++i) assign(target.items[i], parts[i]);
    return;
  }
  if (target.attribute.empty()) {
    scope_->set(target.name, value);
    return;
  }
  const Value object = lookup(target.name);
  pos_ = target.pos;
  if (!object.is(Kind::kNamespace)) raise_error("cannot assign attribute on non-namespace object");
  charge(sizeof(Dict::Entry));
  object.object<NamespaceObject>()->attributes.set(Value::string(target.attribute, true), value);
}

}  // namespace minfer::chat::jinja
