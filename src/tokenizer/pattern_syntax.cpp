// See pattern_syntax.h.
#include "tokenizer/pattern_syntax.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "tokenizer/unicode.h"

namespace minfer {
namespace {

using Node = PatternNode;
using NodePtr = std::unique_ptr<Node>;

constexpr int kMaxDepth = 50;          // of groups and nested classes
constexpr uint32_t kMaxRepeat = 1000;  // the automaton holds a copy for each
constexpr uint32_t kMaxFolded = 1000;  // members of a class under (?i:...)

NodePtr make(Node::Kind kind) {
  auto node = std::make_unique<Node>();
  node->kind = kind;
  return node;
}

NodePtr make_set(CharSet set) {
  auto node = make(Node::Kind::kSet);
  node->set = std::move(set);
  return node;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<NodePtr> parse() {
    NodePtr node = MINFER_TRY(alternate(0));
    if (pos_ < text_.size()) return fail("')' without '('");
    return node;
  }

 private:
  Error fail(std::string_view what) const {
    return make_error(ErrorCode::kUnsupported, "[tokenizer] regular expression '{}': {} at byte {} is not understood",
                      std::string(text_.substr(0, 200)), what, pos_);
  }
  bool more() const { return pos_ < text_.size(); }
  bool looking_at(std::string_view s) const { return text_.substr(pos_, s.size()) == s; }
  bool take(std::string_view s) {
    if (!looking_at(s)) return false;
    pos_ += s.size();
    return true;
  }

  Result<NodePtr> alternate(int depth) {
    if (depth > kMaxDepth) return fail("so deep a nesting");
    auto node = make(Node::Kind::kAlternate);
    do {
      node->parts.push_back(MINFER_TRY(concat(depth)));
    } while (take("|"));
    if (node->parts.size() == 1) return std::move(node->parts[0]);
    return node;
  }

  Result<NodePtr> concat(int depth) {
    auto node = make(Node::Kind::kConcat);
    while (more() && !looking_at("|") && !looking_at(")")) {
      NodePtr atom = MINFER_TRY(this->atom(depth));
      node->parts.push_back(MINFER_TRY(quantified(std::move(atom))));
    }
    return node;
  }

  Result<uint32_t> number() {
    uint32_t value = 0;
    const size_t start = pos_;
    while (more() && text_[pos_] >= '0' && text_[pos_] <= '9') {
      value = value * 10 + static_cast<uint32_t>(text_[pos_++] - '0');
      if (value > kMaxRepeat) return fail("so large a repetition");
    }
    if (pos_ == start) return fail("'{'");
    return value;
  }

  Result<NodePtr> quantified(NodePtr atom) {
    for (bool first = true;; first = false) {
      uint32_t min = 0, max = Node::kUnbounded;
      bool braces = false;
      if (take("*")) {
      } else if (take("+")) {
        min = 1;
      } else if (take("?")) {
        max = 1;
      } else if (looking_at("{")) {
        ++pos_;
        braces = true;
        min = max = MINFER_TRY(number());
        if (take(",")) {
          max = looking_at("}") ? Node::kUnbounded : MINFER_TRY(number());
        }
        if (!take("}") || max < min) return fail("'{'");
      } else {
        return atom;
      }
      if (!first) return fail("a quantifier after a quantifier");
      if (atom->kind == Node::Kind::kAhead) return fail("a quantifier after a lookahead");
      auto node = make(Node::Kind::kRepeat);
      node->min = min;
      node->max = max;
      if (take("?"))
        node->greedy = false;
      else if (!braces && take("+"))
        node->possessive = true;
      node->parts.push_back(std::move(atom));
      atom = std::move(node);
    }
  }

  Result<NodePtr> atom(int depth) {
    if (take("(")) return group(depth);
    if (looking_at("[")) return literal(MINFER_TRY(char_class(depth)));
    if (take(".")) return make_set(CharSet('\n').complement());
    if (take("$")) {  // the end of a line or of the text
      auto node = make(Node::Kind::kAhead);
      node->set = CharSet('\n');
      node->at_end = true;
      return node;
    }
    if (looking_at("\\")) return literal(MINFER_TRY(escape()));
    if (looking_at("*") || looking_at("+") || looking_at("?") || looking_at("{")) {
      return fail("a quantifier without anything before it");
    }
    if (looking_at("^")) return fail("'^'");
    return literal(CharSet(MINFER_TRY(code_point())));
  }

  Result<NodePtr> literal(CharSet set) {
    if (!fold_) return make_set(std::move(set));
    // A class of more than this holds both cases of its letters already or is beyond what these expressions need.
    if (set.size() > kMaxFolded) return fail("a large class under (?i:...)");
    return make_set(set.any_case());
  }

  Result<NodePtr> group(int depth) {
    const bool outer = fold_;
    if (take("?")) {
      if (take("i:")) {
        fold_ = true;
      } else if (looking_at("=") || looking_at("!")) {
        const bool negative = text_[pos_++] == '!';
        NodePtr body = MINFER_TRY(alternate(depth + 1));
        if (!take(")")) return fail("'(' without ')'");
        auto node = make(Node::Kind::kAhead);
        if (!one_character(*body, *node)) return fail("a lookahead of more than one character");
        if (negative) {
          node->set = node->set.complement();
          node->at_end = !node->at_end;
        }
        return node;
      } else if (!take(":")) {
        return fail("this kind of '(?'");
      }
    }
    NodePtr body = MINFER_TRY(alternate(depth + 1));
    fold_ = outer;
    if (!take(")")) return fail("'(' without ')'");
    return body;
  }

  // Collects what a lookahead accepts as the next character into `ahead`; false if it looks further than that.
  static bool one_character(const Node& body, Node& ahead) {
    switch (body.kind) {
      case Node::Kind::kSet: ahead.set.add(body.set); return true;
      case Node::Kind::kAhead:
        ahead.set.add(body.set);
        ahead.at_end |= body.at_end;
        return true;
      case Node::Kind::kConcat: return body.parts.size() == 1 && one_character(*body.parts[0], ahead);
      case Node::Kind::kAlternate:
        return std::all_of(body.parts.begin(), body.parts.end(),
                           [&](const NodePtr& part) { return one_character(*part, ahead); });
      default: return false;
    }
  }

  Result<uint32_t> code_point() {
    const CodePoint c = read_code_point(text_, pos_);
    if (!c.valid) return fail("a byte that is no UTF-8");
    pos_ += c.bytes;
    return c.value;
  }

  Result<uint32_t> hex(size_t least, size_t most) {
    uint32_t value = 0;
    size_t n = 0;
    for (; n < most && more(); ++n, ++pos_) {
      const char c = text_[pos_];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) break;
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    if (n < least || value > kMaxCodePoint) return fail("this code point");
    return value;
  }

  // A backslash and what follows it, inside or outside a class.
  Result<CharSet> escape() {
    ++pos_;
    if (!more()) return fail("'\\' at the end");
    const char c = text_[pos_];
    switch (c) {
      case 'n': ++pos_; return CharSet('\n');
      case 'r': ++pos_; return CharSet('\r');
      case 't': ++pos_; return CharSet('\t');
      case 'f': ++pos_; return CharSet('\f');
      case 'v': ++pos_; return CharSet('\v');
      case 's': ++pos_; return CharSet::space();
      case 'S': ++pos_; return CharSet::space().complement();
      case 'd': ++pos_; return *CharSet::property("Nd");
      case 'D': ++pos_; return CharSet::property("Nd")->complement();
      case 'w': ++pos_; return CharSet::word();
      case 'W': ++pos_; return CharSet::word().complement();
      case 'x':
        ++pos_;
        if (take("{")) {
          const uint32_t cp = MINFER_TRY(hex(1, 6));
          if (!take("}")) return fail("'\\x{'");
          return CharSet(cp);
        }
        return CharSet(MINFER_TRY(hex(1, 2)));
      case 'u': ++pos_; return CharSet(MINFER_TRY(hex(4, 4)));
      case 'p':
      case 'P': return property();
      default: break;
    }
    const bool sign =
        (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
    if (!sign && c != ' ') return fail("'\\" + std::string(1, c >= ' ' && c < 0x7f ? c : '?') + "'");
    ++pos_;
    return CharSet(static_cast<unsigned char>(c));
  }

  Result<CharSet> property() {
    bool negative = text_[pos_] == 'P';
    ++pos_;
    if (!take("{")) return fail("'\\p' without '{'");
    negative ^= take("^");
    const size_t end = text_.find('}', pos_);
    if (end == std::string_view::npos) return fail("'\\p{' without '}'");
    const std::string_view name = text_.substr(pos_, end - pos_);
    const auto set = CharSet::property(name);
    if (!set) return fail("the property '" + std::string(name.substr(0, 40)) + "'");
    pos_ = end + 1;
    return negative ? set->complement() : *set;
  }

  Result<CharSet> char_class(int depth) {
    if (depth > kMaxDepth) return fail("so deep a nesting");
    ++pos_;
    const bool negative = take("^");
    if (looking_at("]")) return fail("']' as the first of a class");
    CharSet set;
    std::optional<CharSet> left;  // of '&&'
    const auto intersected = [&] { return left ? left->intersection(set) : set; };
    for (;;) {
      if (!more()) return fail("'[' without ']'");
      if (take("]")) break;
      if (take("&&")) {
        left = intersected();
        set = CharSet();
        continue;
      }
      if (looking_at("[:")) return fail("a POSIX class");
      if (looking_at("[")) {
        set.add(MINFER_TRY(char_class(depth + 1)));
        continue;
      }
      const CharSet first = looking_at("\\") ? MINFER_TRY(escape()) : CharSet(MINFER_TRY(code_point()));
      const bool range = looking_at("-") && pos_ + 1 < text_.size() && text_[pos_ + 1] != ']';
      if (!range) {
        set.add(first);
        continue;
      }
      ++pos_;
      if (looking_at("[") || looking_at("&&")) return fail("a range without an end");
      const CharSet last = looking_at("\\") ? MINFER_TRY(escape()) : CharSet(MINFER_TRY(code_point()));
      if (first.size() != 1 || last.size() != 1) return fail("a range between classes");
      const uint32_t from = first.ranges()[0].first, to = last.ranges()[0].first;
      if (from > to) return fail("a range that runs backwards");
      set.add({from, to});
    }
    set = intersected();
    return negative ? set.complement() : set;
  }

  std::string_view text_;
  size_t pos_ = 0;
  bool fold_ = false;  // inside (?i:...)
};

}  // namespace

Result<std::unique_ptr<PatternNode>> parse_pattern(std::string_view regex) { return Parser(regex).parse(); }

}  // namespace minfer
