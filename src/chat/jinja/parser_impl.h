// The parser's class, shared by parser.cpp (statements) and parser_expr.cpp (expressions).
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/ast.h"
#include "chat/jinja/parser.h"
#include "chat/jinja/raised.h"

namespace minfer::chat::jinja {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  Body parse_template();

 private:
  // One level of nesting for as long as it lives.
  class Level {
   public:
    explicit Level(Parser& p) : p_(p) {
      if (++p_.nesting_ > kMaxNesting) p_.fail(fmt::format("nested more than {} levels deep", kMaxNesting));
    }
    ~Level() { --p_.nesting_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& p_;
  };

  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token next() {
    Token t = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return t;
  }
  bool at_op(std::string_view op) const { return current().op(op); }
  bool at_name(std::string_view name) const { return current().name(name); }
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  Pos expect_op(std::string_view op);
  void expect_name(std::string_view name);
  std::string expect_identifier(const char* what);
  [[noreturn]] void fail(const std::string& what) const { fail_at(current().pos, what); }
  [[noreturn]] void fail_at(Pos pos, const std::string& what) const { raise_at(pos, ErrorCode::kCorrupt, "{}", what); }
  // Sets node->height from its children and bounds it.
  template <typename T>
  std::unique_ptr<T> grown(std::unique_ptr<T> node, std::initializer_list<const Expr*> children) const;
  int args_height(const CallArgs& args) const;
  void set_height(Expr& node, int height) const;

  // statements
  Body statements(std::initializer_list<std::string_view> ends, std::string_view tag, Pos open);
  std::unique_ptr<Stmt> statement();
  std::unique_ptr<Stmt> if_statement(Pos pos);
  std::unique_ptr<Stmt> for_statement(Pos pos);
  std::unique_ptr<Stmt> set_statement(Pos pos);
  std::unique_ptr<Stmt> with_statement(Pos pos);
  std::unique_ptr<Stmt> macro_statement(Pos pos);
  std::unique_ptr<Stmt> call_block(Pos pos);
  std::unique_ptr<Stmt> filter_block(Pos pos);
  std::unique_ptr<Stmt> scope_statement(Pos pos, const std::string& tag);
  void signature(MacroDef& def);
  void macro_body(MacroDef& def, std::string_view end, std::string_view tag, Pos pos);
  Target target(bool with_namespace, bool stop_at_in);
  Target target_item(bool with_namespace);
  void check_assignable(const Target& target) const;

  // expressions, loosest binding first
  ExprPtr tuple_or_expression(bool with_cond, bool explicit_parentheses, bool stop_at_recursive);
  ExprPtr expression() { return conditional(); }
  ExprPtr conditional();
  ExprPtr logic_or();
  ExprPtr logic_and();
  ExprPtr logic_not();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concat();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filter);
  ExprPtr primary();
  ExprPtr postfix(ExprPtr node);
  ExprPtr filters_and_tests(ExprPtr node);
  ExprPtr subscript(ExprPtr node);
  ExprPtr subscript_argument();
  ExprPtr call(ExprPtr node);
  ExprPtr filter(ExprPtr node);
  ExprPtr filter_chain(ExprPtr node, bool start_inline);
  ExprPtr test(ExprPtr node);
  ExprPtr list_literal();
  ExprPtr dict_literal();
  CallArgs call_args();
  std::string dotted_name(const char* what);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  int loops_ = 0;                  // open for bodies, for break and continue
  std::vector<MacroDef*> macros_;  // open macro bodies, to note uses of caller, kwargs, varargs
};

template <typename T>
std::unique_ptr<T> Parser::grown(std::unique_ptr<T> node, std::initializer_list<const Expr*> children) const {
  int height = node->height;
  for (const Expr* child : children) {
    if (child != nullptr) height = std::max(height, child->height + 1);
  }
  set_height(*node, height);
  return node;
}

}  // namespace minfer::chat::jinja
