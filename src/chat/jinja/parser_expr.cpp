// Expressions.
#include <algorithm>
#include <charconv>

#include "chat/jinja/bigint.h"
#include "chat/jinja/parser_impl.h"

namespace minfer::chat::jinja {

// One expression, or a tuple when commas follow; nothing at all is () only inside parentheses.
ExprPtr Parser::tuple_or_expression(bool with_cond, bool explicit_parentheses, bool stop_at_recursive) {
  Level level(*this);
  const Pos pos = current().pos;
  const auto at_end = [&] {
    return current().type == Tok::kVariableEnd || current().type == Tok::kBlockEnd || at_op(")") ||
           (stop_at_recursive && at_name("recursive"));
  };
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  for (;;) {
    if (!items.empty()) expect_op(",");
    if (at_end()) break;
    items.push_back(with_cond ? conditional() : logic_or());
    if (!at_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return std::move(items[0]);
    if (!explicit_parentheses) fail(fmt::format("expected an expression, found {}", describe(current())));
  }
  auto node = std::make_unique<Sequence>(ExprKind::kTuple, pos);
  int height = 1;
  for (const ExprPtr& item : items) height = std::max(height, item->height + 1);
  set_height(*node, height);
  node->items = std::move(items);
  return node;
}

ExprPtr Parser::conditional() {
  Level level(*this);
  ExprPtr then = logic_or();
  while (at_name("if")) {
    auto node = std::make_unique<Cond>(next().pos);
    node->then = std::move(then);
    node->test = logic_or();
    if (skip_name("else")) node->otherwise = conditional();
    const Expr *a = node->then.get(), *b = node->test.get(), *c = node->otherwise.get();
    then = grown(std::move(node), {a, b, c});
  }
  return then;
}

ExprPtr Parser::logic_or() {
  ExprPtr left = logic_and();
  while (at_name("or")) {
    const Pos pos = next().pos;
    ExprPtr right = logic_and();
    const Expr *l = left.get(), *r = right.get();
    left = grown(std::make_unique<Logic>(pos, false, std::move(left), std::move(right)), {l, r});
  }
  return left;
}

ExprPtr Parser::logic_and() {
  ExprPtr left = logic_not();
  while (at_name("and")) {
    const Pos pos = next().pos;
    ExprPtr right = logic_not();
    const Expr *l = left.get(), *r = right.get();
    left = grown(std::make_unique<Logic>(pos, true, std::move(left), std::move(right)), {l, r});
  }
  return left;
}

ExprPtr Parser::logic_not() {
  if (!at_name("not")) return comparison();
  Level level(*this);
  const Pos pos = next().pos;
  ExprPtr operand = logic_not();
  const Expr* o = operand.get();
  return grown(std::make_unique<Unary>(pos, UnaryOp::kNot, std::move(operand)), {o});
}

ExprPtr Parser::comparison() {
  static constexpr std::pair<std::string_view, CompareOp> kOps[] = {{"==", CompareOp::kEq}, {"!=", CompareOp::kNe},
                                                                    {"<", CompareOp::kLt},  {"<=", CompareOp::kLe},
                                                                    {">", CompareOp::kGt},  {">=", CompareOp::kGe}};
  ExprPtr first = sum();
  std::unique_ptr<Compare> node;
  const auto add = [&](CompareOp op, Pos pos) {
    if (!node) {
      node = std::make_unique<Compare>(pos);
      node->first = std::move(first);
      set_height(*node, node->first->height + 1);
    }
    ExprPtr operand = sum();
    set_height(*node, std::max<int>(node->height, operand->height + 1));
    node->rest.emplace_back(op, std::move(operand));
  };
  for (;;) {
    if (current().type == Tok::kOperator) {
      const auto* op = std::begin(kOps);
      while (op != std::end(kOps) && !at_op(op->first)) ++op;
      if (op == std::end(kOps)) break;
      const Pos pos = next().pos;
      add(op->second, pos);
    } else if (at_name("in")) {
      const Pos pos = next().pos;
      add(CompareOp::kIn, pos);
    } else if (at_name("not") && look().name("in")) {
      const Pos pos = next().pos;
      next();
      add(CompareOp::kNotIn, pos);
    } else {
      break;
    }
  }
  return node ? ExprPtr(std::move(node)) : std::move(first);
}

ExprPtr Parser::sum() {
  ExprPtr left = concat();
  while (at_op("+") || at_op("-")) {
    const BinaryOp op = at_op("+") ? BinaryOp::kAdd : BinaryOp::kSub;
    const Pos pos = next().pos;
    ExprPtr right = concat();
    const Expr *l = left.get(), *r = right.get();
    left = grown(std::make_unique<Binary>(pos, op, std::move(left), std::move(right)), {l, r});
  }
  return left;
}

ExprPtr Parser::concat() {
  ExprPtr first = product();
  if (!at_op("~")) return first;
  auto node = std::make_unique<Concat>(current().pos);
  int height = first->height + 1;
  node->items.push_back(std::move(first));
  while (skip_op("~")) {
    node->items.push_back(product());
    height = std::max(height, node->items.back()->height + 1);
  }
  set_height(*node, height);
  return node;
}

ExprPtr Parser::product() {
  static constexpr std::pair<std::string_view, BinaryOp> kOps[] = {
      {"*", BinaryOp::kMul}, {"/", BinaryOp::kDiv}, {"//", BinaryOp::kFloorDiv}, {"%", BinaryOp::kMod}};
  ExprPtr left = power();
  for (;;) {
    const auto* op = std::begin(kOps);
    while (op != std::end(kOps) && !at_op(op->first)) ++op;
    if (op == std::end(kOps)) return left;
    const Pos pos = next().pos;
    ExprPtr right = power();
    const Expr *l = left.get(), *r = right.get();
    left = grown(std::make_unique<Binary>(pos, op->second, std::move(left), std::move(right)), {l, r});
  }
}

ExprPtr Parser::power() {
  ExprPtr left = unary(true);
  while (at_op("**")) {
    const Pos pos = next().pos;
    ExprPtr right = unary(true);
    const Expr *l = left.get(), *r = right.get();
    left = grown(std::make_unique<Binary>(pos, BinaryOp::kPow, std::move(left), std::move(right)), {l, r});
  }
  return left;
}

ExprPtr Parser::unary(bool with_filter) {
  Level level(*this);
  ExprPtr node;
  if (at_op("-") || at_op("+")) {
    const UnaryOp op = at_op("-") ? UnaryOp::kNeg : UnaryOp::kPos;
    const Pos pos = next().pos;
    ExprPtr operand = unary(false);
    const Expr* o = operand.get();
    node = grown(std::make_unique<Unary>(pos, op, std::move(operand)), {o});
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filter ? filters_and_tests(std::move(node)) : std::move(node);
}

namespace {

Value integer_literal(const Token& token) {
  std::string_view digits = token.value;
  unsigned base = 10;
  if (digits.size() > 2 && digits[0] == '0') {
    const char c = static_cast<char>(digits[1] | 0x20);
    base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 10;
    if (base != 10) digits.remove_prefix(2);
  }
  std::optional<BigInt> value;
  try {
    value = BigInt::parse(digits, base);
  } catch (Raised& raised) {  // too long
    raised.pos = token.pos;
    throw;
  }
  if (!value) raise_at(token.pos, ErrorCode::kCorrupt, "'{}' is no integer", token.value);
  if (const auto small = value->narrow()) return Value::integer(*small);
  return Value::big_integer(value->text());
}

Value float_literal(const Token& token) {
  double value = 0;
  const char* begin = token.value.data();
  const auto [end, error] = std::from_chars(begin, begin + token.value.size(), value);
  if (error == std::errc::result_out_of_range) {
    raise_at(token.pos, ErrorCode::kCorrupt, "number {} is outside the range of a float", token.value);
  }
  return Value::real(value);
}

}  // namespace

ExprPtr Parser::primary() {
  const Token& token = current();
  const Pos pos = token.pos;
  switch (token.type) {
    case Tok::kName: {
      const std::string name = next().value;
      if (name == "true" || name == "True") return std::make_unique<Literal>(pos, Value::boolean(true));
      if (name == "false" || name == "False") return std::make_unique<Literal>(pos, Value::boolean(false));
      if (name == "none" || name == "None") return std::make_unique<Literal>(pos, Value::none());
      for (MacroDef* macro : macros_) {
        macro->uses_caller |= name == "caller";
        macro->uses_kwargs |= name == "kwargs";
        macro->uses_varargs |= name == "varargs";
      }
      return std::make_unique<Name>(pos, name);
    }
    case Tok::kString: {
      std::string text;
      while (current().type == Tok::kString) text += next().value;
      return std::make_unique<Literal>(pos, Value::string(std::move(text), true));
    }
    case Tok::kInteger: return std::make_unique<Literal>(pos, integer_literal(next()));
    case Tok::kFloat: return std::make_unique<Literal>(pos, float_literal(next()));
    case Tok::kOperator:
      if (token.value == "(") {
        next();
        ExprPtr node = tuple_or_expression(true, true, false);
        expect_op(")");
        return node;
      }
      if (token.value == "[") return list_literal();
      if (token.value == "{") return dict_literal();
      [[fallthrough]];
    default: fail("expected an expression, found " + describe(token));
  }
}

ExprPtr Parser::list_literal() {
  Level level(*this);
  auto node = std::make_unique<Sequence>(ExprKind::kList, expect_op("["));
  int height = 1;
  while (!at_op("]")) {
    if (!node->items.empty()) expect_op(",");
    if (at_op("]")) break;
    node->items.push_back(expression());
    height = std::max(height, node->items.back()->height + 1);
  }
  expect_op("]");
  set_height(*node, height);
  return node;
}

ExprPtr Parser::dict_literal() {
  Level level(*this);
  auto node = std::make_unique<DictLiteral>(expect_op("{"));
  int height = 1;
  while (!at_op("}")) {
    if (!node->entries.empty()) expect_op(",");
    if (at_op("}")) break;
    ExprPtr key = expression();
    expect_op(":");
    ExprPtr value = expression();
    height = std::max({height, key->height + 1, value->height + 1});
    node->entries.emplace_back(std::move(key), std::move(value));
  }
  expect_op("}");
  set_height(*node, height);
  return node;
}

ExprPtr Parser::postfix(ExprPtr node) {
  for (;;) {
    if (at_op(".") || at_op("[")) {
      node = subscript(std::move(node));
    } else if (at_op("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr Parser::filters_and_tests(ExprPtr node) {
  for (;;) {
    if (at_op("|")) {
      node = filter_chain(std::move(node), false);
    } else if (at_name("is")) {
      node = test(std::move(node));
    } else if (at_op("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr Parser::subscript(ExprPtr object) {
  const Expr* o = object.get();
  const Pos pos = current().pos;
  if (skip_op(".")) {
    if (current().type == Tok::kName) {
      return grown(std::make_unique<Attribute>(pos, std::move(object), next().value), {o});
    }
    if (current().type != Tok::kInteger) {
      fail(fmt::format("expected a name or number after '.', found {}", describe(current())));
    }
    auto index = std::make_unique<Literal>(current().pos, integer_literal(next()));
    return grown(std::make_unique<Item>(pos, std::move(object), std::move(index)), {o});
  }
  expect_op("[");
  std::vector<ExprPtr> parts;
  while (!at_op("]")) {
    if (!parts.empty()) expect_op(",");
    parts.push_back(subscript_argument());
  }
  if (parts.empty()) fail("expected an index");
  expect_op("]");
  ExprPtr index;
  if (parts.size() == 1) {
    index = std::move(parts[0]);
  } else {
    auto tuple = std::make_unique<Sequence>(ExprKind::kTuple, pos);
    int height = 1;
    for (const ExprPtr& part : parts) {
      if (part->kind == ExprKind::kSlice) fail_at(part->pos, "a slice cannot stand in a tuple of indices");
      height = std::max(height, part->height + 1);
    }
    set_height(*tuple, height);
    tuple->items = std::move(parts);
    index = std::move(tuple);
  }
  const Expr* i = index.get();
  return grown(std::make_unique<Item>(pos, std::move(object), std::move(index)), {o, i});
}

ExprPtr Parser::subscript_argument() {
  const Pos pos = current().pos;
  ExprPtr start;
  if (!at_op(":")) {
    start = expression();
    if (!at_op(":")) return start;
  }
  auto node = std::make_unique<Slice>(pos);
  node->start = std::move(start);
  expect_op(":");
  if (!at_op(":") && !at_op("]") && !at_op(",")) node->stop = expression();
  if (skip_op(":") && !at_op("]") && !at_op(",")) node->step = expression();
  const Expr *a = node->start.get(), *b = node->stop.get(), *c = node->step.get();
  return grown(std::move(node), {a, b, c});
}

int Parser::args_height(const CallArgs& args) const {
  int height = 0;
  const auto see = [&](const ExprPtr& e) {
    if (e) height = std::max<int>(height, e->height);
  };
  for (const ExprPtr& e : args.positional) see(e);
  for (const auto& [name, e] : args.named) see(e);
  see(args.star);
  see(args.star_star);
  return height;
}

CallArgs Parser::call_args() {
  Level level(*this);
  const Pos open = expect_op("(");
  CallArgs args;
  const auto ensure = [&](bool ok) {
    if (!ok) fail_at(open, "the arguments of this call are out of order");
  };
  bool first = true;
  while (!at_op(")")) {
    if (!first) {
      expect_op(",");
      if (at_op(")")) break;
    }
    first = false;
    if (at_op("*")) {
      ensure(!args.star && !args.star_star);
      next();
      args.star = expression();
    } else if (at_op("**")) {
      ensure(!args.star_star);
      next();
      args.star_star = expression();
    } else if (current().type == Tok::kName && look().op("=")) {
      ensure(!args.star_star);
      std::string name = next().value;
      next();
      for (const auto& [known, value] : args.named) {
        if (known == name) fail(fmt::format("keyword argument '{}' is repeated", name));
      }
      args.named.emplace_back(std::move(name), expression());
    } else {
      ensure(!args.star && !args.star_star && args.named.empty());
      args.positional.push_back(expression());
    }
  }
  expect_op(")");
  return args;
}

ExprPtr Parser::call(ExprPtr callee) {
  const Expr* c = callee.get();
  auto node = std::make_unique<Call>(current().pos, std::move(callee));
  node->args = call_args();
  set_height(*node, std::max<int>(c->height, args_height(node->args)) + 1);
  return node;
}

std::string Parser::dotted_name(const char* what) {
  std::string name = expect_identifier(what);
  while (skip_op(".")) name.append(".").append(expect_identifier(what));
  return name;
}

// "| f | g(x)"; with start_inline the first '|' is left out ({% filter f %}).
ExprPtr Parser::filter_chain(ExprPtr node, bool start_inline) {
  while (start_inline || at_op("|")) {
    if (!start_inline) next();
    start_inline = false;
    const Pos pos = current().pos;
    std::string name = dotted_name("a filter's name");
    const int operand_height = node ? node->height : 0;
    auto filter = std::make_unique<Filter>(pos, std::move(name), std::move(node));
    if (at_op("(")) filter->args = call_args();
    set_height(*filter, std::max(operand_height, args_height(filter->args)) + 1);
    node = std::move(filter);
  }
  return node;
}

ExprPtr Parser::test(ExprPtr operand) {
  next();  // is
  const Pos pos = current().pos;
  const bool negated = skip_name("not");
  std::string name = dotted_name("a test's name");
  const int operand_height = operand->height;
  auto node = std::make_unique<Test>(pos, std::move(name), std::move(operand));
  const Tok type = current().type;
  if (at_op("(")) {
    node->args = call_args();
  } else if ((type == Tok::kName || type == Tok::kString || type == Tok::kInteger || type == Tok::kFloat ||
              at_op("[") || at_op("{")) &&
             !at_name("else") && !at_name("or") && !at_name("and")) {
    if (at_name("is")) fail("tests cannot be chained with 'is'");
    Level level(*this);
    node->args.positional.push_back(postfix(primary()));
  }
  set_height(*node, std::max(operand_height, args_height(node->args)) + 1);
  if (!negated) return node;
  const Expr* n = node.get();
  return grown(std::make_unique<Unary>(pos, UnaryOp::kNot, std::move(node)), {n});
}

}  // namespace minfer::chat::jinja
