// Statements.
#include "chat/jinja/parser.h"

#include "chat/jinja/names.h"
#include "chat/jinja/parser_impl.h"

namespace minfer::chat::jinja {

Body parse(std::string_view source) {
  Body body = Parser(tokenize(source)).parse_template();
  hide_names(body);
  return body;
}

bool Parser::skip_op(std::string_view op) {
  if (!at_op(op)) return false;
  next();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  next();
  return true;
}

Pos Parser::expect_op(std::string_view op) {
  if (!at_op(op)) fail(fmt::format("expected '{}', found {}", op, describe(current())));
  return next().pos;
}

void Parser::expect_name(std::string_view name) {
  if (!skip_name(name)) fail(fmt::format("expected '{}', found {}", name, describe(current())));
}

std::string Parser::expect_identifier(const char* what) {
  if (current().type != Tok::kName) fail(fmt::format("expected {}, found {}", what, describe(current())));
  return next().value;
}

void Parser::set_height(Expr& node, int height) const {
  if (height > kMaxExprHeight) {
    fail_at(node.pos, fmt::format("expression is more than {} operations deep", kMaxExprHeight));
  }
  node.height = static_cast<uint16_t>(height);
}

Body Parser::parse_template() { return statements({}, "", Pos{}); }

// Reads until {% <one of ends>, leaving its name as the current token; with no ends, until the end of the template.
Body Parser::statements(std::initializer_list<std::string_view> ends, std::string_view tag, Pos open) {
  Level level(*this);
  Body body;
  for (;;) {
    const Token token = next();
    switch (token.type) {
      case Tok::kData: body.statements.push_back(std::make_unique<TextStmt>(token.pos, token.value)); break;
      case Tok::kVariableBegin: {
        body.statements.push_back(std::make_unique<OutputStmt>(token.pos, tuple_or_expression(true, false, false)));
        if (current().type != Tok::kVariableEnd) fail(fmt::format("expected '}}}}', found {}", describe(current())));
        next();
        break;
      }
      case Tok::kBlockBegin: {
        for (std::string_view end : ends) {
          if (at_name(end)) return body;
        }
        const bool print = at_name("print");
        if (print) {
          next();
          while (current().type != Tok::kBlockEnd) {
            body.statements.push_back(std::make_unique<OutputStmt>(current().pos, expression()));
            if (current().type != Tok::kBlockEnd) expect_op(",");
          }
        } else {
          body.statements.push_back(statement());
        }
        if (current().type != Tok::kBlockEnd) fail(fmt::format("expected '%}}', found {}", describe(current())));
        next();
        break;
      }
      case Tok::kEof:
        if (ends.size() == 0) return body;
        fail_at(open, fmt::format("{{% {} %}} is not closed, expected {{% {} %}} before the end of the template", tag,
                                  *(ends.end() - 1)));
      default: fail_at(token.pos, "unexpected " + describe(token));
    }
  }
}

std::unique_ptr<Stmt> Parser::statement() {
  const Pos pos = current().pos;
  const std::string tag = expect_identifier("the name of a tag");
  if (tag == "if") return if_statement(pos);
  if (tag == "for") return for_statement(pos);
  if (tag == "set") return set_statement(pos);
  if (tag == "with") return with_statement(pos);
  if (tag == "macro") return macro_statement(pos);
  if (tag == "call") return call_block(pos);
  if (tag == "filter") return filter_block(pos);
  if (tag == "generation" || tag == "block" || tag == "autoescape") return scope_statement(pos, tag);
  if (tag == "break" || tag == "continue") {
    if (loops_ == 0) fail_at(pos, fmt::format("'{}' outside of a loop", tag));
    return std::make_unique<JumpStmt>(tag == "break" ? StmtKind::kBreak : StmtKind::kContinue, pos);
  }
  if (tag == "include" || tag == "import" || tag == "from" || tag == "extends") {
    fail_at(pos, fmt::format("'{}' needs other templates, which a chat template has not", tag));
  }
  fail_at(pos, fmt::format("unknown tag '{}'", tag));
}

std::unique_ptr<Stmt> Parser::if_statement(Pos pos) {
  auto node = std::make_unique<IfStmt>(pos);
  // Every {% if %} body is closed by elif, else or endif; a colon before '%}' is allowed as in Python.
  const auto body = [&](std::initializer_list<std::string_view> ends) {
    skip_op(":");
    if (current().type != Tok::kBlockEnd) fail(fmt::format("expected '%}}', found {}", describe(current())));
    next();
    return statements(ends, "if", pos);
  };
  ExprPtr condition = tuple_or_expression(false, false, false);
  for (;;) {
    Body then = body({"elif", "else", "endif"});
    node->branches.emplace_back(std::move(condition), std::move(then));
    if (skip_name("elif")) {
      condition = tuple_or_expression(false, false, false);
      continue;
    }
    if (skip_name("else")) node->otherwise = body({"endif"});
    expect_name("endif");
    return node;
  }
}

namespace {

void block_end(const Token& token) {
  if (token.type != Tok::kBlockEnd) {
    raise_at(token.pos, ErrorCode::kCorrupt, "expected '%}}', found {}", describe(token));
  }
}

}  // namespace

std::unique_ptr<Stmt> Parser::for_statement(Pos pos) {
  auto node = std::make_unique<ForStmt>(pos);
  node->target = target(false, true);
  expect_name("in");
  node->iterable = tuple_or_expression(false, false, true);
  if (skip_name("if")) node->filter = expression();
  node->recursive = skip_name("recursive");
  skip_op(":");
  block_end(next());
  ++loops_;
  node->body = statements({"else", "endfor"}, "for", pos);
  --loops_;
  if (skip_name("else")) {
    skip_op(":");
    block_end(next());
    node->otherwise = statements({"endfor"}, "for", pos);
  }
  expect_name("endfor");
  return node;
}

std::unique_ptr<Stmt> Parser::set_statement(Pos pos) {
  Target to = target(true, false);
  if (skip_op("=")) {
    auto node = std::make_unique<SetStmt>(pos);
    node->target = std::move(to);
    node->value = tuple_or_expression(true, false, false);
    return node;
  }
  auto node = std::make_unique<SetBlockStmt>(pos);
  node->target = std::move(to);
  node->filter = filter_chain(nullptr, false);
  skip_op(":");
  block_end(next());
  node->body = statements({"endset"}, "set", pos);
  node->end = current().pos;
  expect_name("endset");
  return node;
}

std::unique_ptr<Stmt> Parser::with_statement(Pos pos) {
  auto node = std::make_unique<WithStmt>(pos);
  while (current().type != Tok::kBlockEnd) {
    if (!node->bindings.empty()) expect_op(",");
    Target to = target(false, false);
    expect_op("=");
    node->bindings.emplace_back(std::move(to), expression());
  }
  block_end(next());
  node->body = statements({"endwith"}, "with", pos);
  expect_name("endwith");
  return node;
}

void Parser::signature(MacroDef& def) {
  expect_op("(");
  while (!at_op(")")) {
    if (!def.params.empty()) expect_op(",");
    const Pos pos = current().pos;
    def.params.push_back(expect_identifier("a parameter name"));
    if (skip_op("=")) {
      def.defaults.push_back(expression());
    } else if (!def.defaults.empty()) {
      fail_at(pos, "a parameter without default follows one with a default");
    }
  }
  expect_op(")");
}

void Parser::macro_body(MacroDef& def, std::string_view end, std::string_view tag, Pos pos) {
  skip_op(":");
  block_end(next());
  const int loops = std::exchange(loops_, 0);  // no break out of a macro
  def.body = statements({end}, tag, pos);
  loops_ = loops;
  expect_name(end);
}

std::unique_ptr<Stmt> Parser::macro_statement(Pos pos) {
  auto node = std::make_unique<MacroStmt>(pos);
  node->def.name = expect_identifier("the macro's name");
  macros_.push_back(&node->def);
  signature(node->def);
  macro_body(node->def, "endmacro", "macro", pos);
  macros_.pop_back();
  return node;
}

std::unique_ptr<Stmt> Parser::call_block(Pos pos) {
  auto node = std::make_unique<CallBlockStmt>(pos);
  node->def.name = "caller";
  node->def.anonymous = true;
  macros_.push_back(&node->def);
  if (at_op("(")) signature(node->def);
  macros_.pop_back();
  node->call = expression();
  if (node->call->kind != ExprKind::kCall) fail_at(pos, "expected a call after 'call'");
  macros_.push_back(&node->def);
  macro_body(node->def, "endcall", "call", pos);
  macros_.pop_back();
  return node;
}

std::unique_ptr<Stmt> Parser::filter_block(Pos pos) {
  auto node = std::make_unique<FilterBlockStmt>(pos);
  node->filter = filter_chain(nullptr, true);
  skip_op(":");
  block_end(next());
  node->body = statements({"endfilter"}, "filter", pos);
  expect_name("endfilter");
  return node;
}

std::unique_ptr<Stmt> Parser::scope_statement(Pos pos, const std::string& tag) {
  auto node = std::make_unique<ScopeStmt>(pos);
  if (tag == "block") {
    node->is_block = true;
    expect_identifier("the block's name");
    while (at_name("scoped") || at_name("required")) next();
  } else if (tag == "autoescape") {
    const ExprPtr on = expression();
    const auto* literal = on->kind == ExprKind::kLiteral ? static_cast<const Literal*>(on.get()) : nullptr;
    if (literal == nullptr || !literal->value.is(Value::Kind::kBool) || literal->value.as_bool()) {
      fail_at(pos, "autoescape other than false is not supported");
    }
  }
  block_end(next());
  const std::string end = "end" + tag;
  // Jinja makes functions of the first two: no break out of them.
  const int loops = tag == "autoescape" ? loops_ : std::exchange(loops_, 0);
  node->body = statements({end}, tag, pos);
  loops_ = loops;
  expect_name(end);
  if (tag == "block" && current().type == Tok::kName) next();
  return node;
}

Target Parser::target_item(bool with_namespace) {
  Level level(*this);
  Target t;
  t.pos = current().pos;
  if (skip_op("(")) {
    t = target(with_namespace, false);
    expect_op(")");
    return t;
  }
  t.name = expect_identifier("a name to assign to");
  if (with_namespace && skip_op(".")) t.attribute = expect_identifier("an attribute's name");
  check_assignable(t);
  return t;
}

void Parser::check_assignable(const Target& t) const {
  for (std::string_view reserved : {"true", "false", "none", "True", "False", "None"}) {
    if (t.name == reserved) fail_at(t.pos, fmt::format("cannot assign to '{}'", reserved));
  }
}

Target Parser::target(bool with_namespace, bool stop_at_in) {
  Target first = target_item(with_namespace);
  if (!at_op(",")) return first;
  Target tuple;
  tuple.pos = first.pos;
  tuple.is_tuple = true;
  tuple.items.push_back(std::move(first));
  while (skip_op(",")) {
    if (current().type == Tok::kBlockEnd || at_op(")") || at_op("=") || (stop_at_in && at_name("in"))) break;
    tuple.items.push_back(target_item(with_namespace));
  }
  return tuple;
}

}  // namespace minfer::chat::jinja
