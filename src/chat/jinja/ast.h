// The typed tree of a template. Nodes are made by the parser, never changed afterwards, and walked by the interpreter.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chat/jinja/lexer.h"
#include "chat/value.h"

namespace minfer::chat::jinja {

struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;

// Statements in a row.
struct Body {
  std::vector<std::unique_ptr<Stmt>> statements;
  // With names of its own (all but the branches of an if): those that are undefined until the body sets them, whatever
  // the template was given under that name (names.cpp).
  std::vector<std::string> hidden;
};

// ---- expressions

enum class ExprKind : uint8_t {
  kLiteral,
  kName,
  kList,
  kTuple,
  kDict,
  kUnary,
  kBinary,
  kConcat,
  kCompare,
  kLogic,
  kCond,
  kAttribute,
  kItem,
  kSlice,
  kCall,
  kFilter,
  kTest,
};

enum class UnaryOp : uint8_t { kNeg, kPos, kNot };
enum class BinaryOp : uint8_t { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };
enum class CompareOp : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

struct Expr {
  Expr(ExprKind k, Pos p) : kind(k), pos(p) {}
  virtual ~Expr() = default;
  const ExprKind kind;
  uint16_t height = 1;  // longest way down; the parser bounds it
  const Pos pos;
};

struct Literal : Expr {
  Literal(Pos p, Value v) : Expr(ExprKind::kLiteral, p), value(std::move(v)) {}
  Value value;
};

struct Name : Expr {
  Name(Pos p, std::string n) : Expr(ExprKind::kName, p), name(std::move(n)) {}
  std::string name;
};

struct Sequence : Expr {  // list or tuple
  using Expr::Expr;
  std::vector<ExprPtr> items;
};

struct DictLiteral : Expr {
  explicit DictLiteral(Pos p) : Expr(ExprKind::kDict, p) {}
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};

struct Unary : Expr {
  Unary(Pos p, UnaryOp o, ExprPtr e) : Expr(ExprKind::kUnary, p), op(o), operand(std::move(e)) {}
  UnaryOp op;
  ExprPtr operand;
};

struct Binary : Expr {
  Binary(Pos p, BinaryOp o, ExprPtr l, ExprPtr r)
      : Expr(ExprKind::kBinary, p), op(o), left(std::move(l)), right(std::move(r)) {}
  BinaryOp op;
  ExprPtr left, right;
};

struct Concat : Expr {  // a ~ b ~ c
  explicit Concat(Pos p) : Expr(ExprKind::kConcat, p) {}
  std::vector<ExprPtr> items;
};

struct Compare : Expr {  // a < b <= c
  explicit Compare(Pos p) : Expr(ExprKind::kCompare, p) {}
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};

struct Logic : Expr {
  Logic(Pos p, bool a, ExprPtr l, ExprPtr r)
      : Expr(ExprKind::kLogic, p), is_and(a), left(std::move(l)), right(std::move(r)) {}
  bool is_and;
  ExprPtr left, right;
};

struct Cond : Expr {  // then if test else otherwise
  explicit Cond(Pos p) : Expr(ExprKind::kCond, p) {}
  ExprPtr test, then, otherwise;  // otherwise may be null
};

struct Attribute : Expr {  // a.name
  Attribute(Pos p, ExprPtr o, std::string n)
      : Expr(ExprKind::kAttribute, p), object(std::move(o)), name(std::move(n)) {}
  ExprPtr object;
  std::string name;
};

struct Item : Expr {  // a[index]; index may be a Slice
  Item(Pos p, ExprPtr o, ExprPtr i) : Expr(ExprKind::kItem, p), object(std::move(o)), index(std::move(i)) {}
  ExprPtr object, index;
};

struct Slice : Expr {  // each bound may be null
  explicit Slice(Pos p) : Expr(ExprKind::kSlice, p) {}
  ExprPtr start, stop, step;
};

struct CallArgs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star, star_star;  // *args, **kwargs or null
};

struct Call : Expr {
  Call(Pos p, ExprPtr c) : Expr(ExprKind::kCall, p), callee(std::move(c)) {}
  ExprPtr callee;
  CallArgs args;
};

struct Filter : Expr {  // operand is null at the head of a {% filter %} or {% set x | f %} chain: the block's text
  Filter(Pos p, std::string n, ExprPtr o) : Expr(ExprKind::kFilter, p), name(std::move(n)), operand(std::move(o)) {}
  std::string name;
  ExprPtr operand;
  CallArgs args;
};

struct Test : Expr {
  Test(Pos p, std::string n, ExprPtr o) : Expr(ExprKind::kTest, p), name(std::move(n)), operand(std::move(o)) {}
  std::string name;
  ExprPtr operand;
  CallArgs args;
};

// ---- statements

enum class StmtKind : uint8_t {
  kText,
  kOutput,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kWith,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kScope,
  kBreak,
  kContinue,
};

struct Stmt {
  Stmt(StmtKind k, Pos p) : kind(k), pos(p) {}
  virtual ~Stmt() = default;
  const StmtKind kind;
  const Pos pos;
};

// What can stand left of "=": a name, a namespace's attribute, or a tuple of targets.
struct Target {
  Pos pos;
  std::string name;
  std::string attribute;      // not empty: name.attribute
  std::vector<Target> items;  // is_tuple
  bool is_tuple = false;
};

struct TextStmt : Stmt {
  TextStmt(Pos p, std::string t) : Stmt(StmtKind::kText, p), text(std::move(t)) {}
  std::string text;
};

struct OutputStmt : Stmt {
  OutputStmt(Pos p, ExprPtr e) : Stmt(StmtKind::kOutput, p), expr(std::move(e)) {}
  ExprPtr expr;
};

struct IfStmt : Stmt {
  explicit IfStmt(Pos p) : Stmt(StmtKind::kIf, p) {}
  std::vector<std::pair<ExprPtr, Body>> branches;  // if, elif...
  Body otherwise;
};

struct ForStmt : Stmt {
  explicit ForStmt(Pos p) : Stmt(StmtKind::kFor, p) {}
  Target target;
  ExprPtr iterable;
  ExprPtr filter;  // for x in y if filter; may be null
  bool recursive = false;
  Body body, otherwise;
};

struct SetStmt : Stmt {
  explicit SetStmt(Pos p) : Stmt(StmtKind::kSet, p) {}
  Target target;
  ExprPtr value;
};

struct SetBlockStmt : Stmt {
  explicit SetBlockStmt(Pos p) : Stmt(StmtKind::kSetBlock, p) {}
  Target target;
  ExprPtr filter;  // may be null
  Body body;
  Pos end;  // of its {% endset %}
};

struct WithStmt : Stmt {
  explicit WithStmt(Pos p) : Stmt(StmtKind::kWith, p) {}
  std::vector<std::pair<Target, ExprPtr>> bindings;
  Body body;
};

// The callable part of {% macro %} and {% call %}.
struct MacroDef {
  std::string name;  // "caller" for a call block, which is anonymous otherwise
  bool anonymous = false;
  std::vector<std::string> params;
  std::vector<ExprPtr> defaults;  // for the last params
  Body body;
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
};

struct MacroStmt : Stmt {
  explicit MacroStmt(Pos p) : Stmt(StmtKind::kMacro, p) {}
  MacroDef def;
};

struct CallBlockStmt : Stmt {
  explicit CallBlockStmt(Pos p) : Stmt(StmtKind::kCallBlock, p) {}
  MacroDef def;
  std::unique_ptr<Expr> call;  // a Call
};

struct FilterBlockStmt : Stmt {
  explicit FilterBlockStmt(Pos p) : Stmt(StmtKind::kFilterBlock, p) {}
  ExprPtr filter;
  Body body;
};

// Calls f(child) for each expression right inside `e`.
template <typename F>
void for_each_child(const Expr& e, F&& f);

struct ScopeStmt : Stmt {  // {% generation %}, {% block %}, {% autoescape false %}: a body with names of its own
  explicit ScopeStmt(Pos p) : Stmt(StmtKind::kScope, p) {}
  bool is_block = false;
  Body body;
};

struct JumpStmt : Stmt {  // break, continue
  using Stmt::Stmt;
};

template <typename F>
void for_each_child(const Expr& e, F&& f) {
  const auto see = [&](const ExprPtr& child) {
    if (child) f(*child);
  };
  const auto see_args = [&](const CallArgs& args) {
    for (const ExprPtr& child : args.positional) see(child);
    for (const auto& [name, child] : args.named) see(child);
    see(args.star);
    see(args.star_star);
  };
  switch (e.kind) {
    case ExprKind::kLiteral:
    case ExprKind::kName: break;
    case ExprKind::kList:
    case ExprKind::kTuple:
      for (const ExprPtr& child : static_cast<const Sequence&>(e).items) see(child);
      break;
    case ExprKind::kDict:
      for (const auto& [key, value] : static_cast<const DictLiteral&>(e).entries) see(key), see(value);
      break;
    case ExprKind::kUnary: see(static_cast<const Unary&>(e).operand); break;
    case ExprKind::kBinary:
      see(static_cast<const Binary&>(e).left);
      see(static_cast<const Binary&>(e).right);
      break;
    case ExprKind::kConcat:
      for (const ExprPtr& child : static_cast<const Concat&>(e).items) see(child);
      break;
    case ExprKind::kCompare:
      see(static_cast<const Compare&>(e).first);
      for (const auto& [op, child] : static_cast<const Compare&>(e).rest) see(child);
      break;
    case ExprKind::kLogic:
      see(static_cast<const Logic&>(e).left);
      see(static_cast<const Logic&>(e).right);
      break;
    case ExprKind::kCond:
      see(static_cast<const Cond&>(e).test);
      see(static_cast<const Cond&>(e).then);
      see(static_cast<const Cond&>(e).otherwise);
      break;
    case ExprKind::kAttribute: see(static_cast<const Attribute&>(e).object); break;
    case ExprKind::kItem:
      see(static_cast<const Item&>(e).object);
      see(static_cast<const Item&>(e).index);
      break;
    case ExprKind::kSlice:
      see(static_cast<const Slice&>(e).start);
      see(static_cast<const Slice&>(e).stop);
      see(static_cast<const Slice&>(e).step);
      break;
    case ExprKind::kCall:
      see(static_cast<const Call&>(e).callee);
      see_args(static_cast<const Call&>(e).args);
      break;
    case ExprKind::kFilter:
      see(static_cast<const Filter&>(e).operand);
      see_args(static_cast<const Filter&>(e).args);
      break;
    case ExprKind::kTest:
      see(static_cast<const Test&>(e).operand);
      see_args(static_cast<const Test&>(e).args);
      break;
  }
}

}  // namespace minfer::chat::jinja
