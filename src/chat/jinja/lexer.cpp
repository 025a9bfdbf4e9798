// The lexer: one pass, linear in the source.
#include "chat/jinja/lexer.h"

#include <array>

#include "chat/jinja/raised.h"
#include "chat/jinja/unicode.h"

namespace minfer::chat::jinja {

namespace {

[[noreturn]] void syntax_error(Pos pos, const std::string& what) { raise_at(pos, ErrorCode::kCorrupt, "{}", what); }

bool digit(char c) { return c >= '0' && c <= '9'; }
bool hex_digit(char c) { return digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// CR LF and CR become LF; one LF at the end goes.
std::string normalize_newlines(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '\r') {
      out += s[i];
      continue;
    }
    out += '\n';
    if (i + 1 < s.size() && s[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

// The escapes of Python's string literals.
std::string unescape(std::string_view s, Pos pos) {
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '\\') {
      out += s[i];
      continue;
    }
    const char c = s[++i];  // the lexer leaves no backslash at the end
    const auto hex = [&](size_t n) {
      uint32_t code = 0;
      for (size_t k = 1; k <= n; ++k) {
        if (i + k >= s.size() || !hex_digit(s[i + k])) syntax_error(pos, fmt::format("truncated \\{} escape", c));
        const char h = s[i + k];
        code = code * 16 + static_cast<uint32_t>(digit(h) ? h - '0' : (h | 0x20) - 'a' + 10);
      }
      i += n;
      if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        syntax_error(pos, fmt::format("escape \\{}{:x} is no Unicode character", c, code));
      }
      append_utf8(out, code);
    };
    switch (c) {
      case '\n': break;
      case '\\': out += '\\'; break;
      case '\'': out += '\''; break;
      case '"': out += '"'; break;
      case 'a': out += '\a'; break;
      case 'b': out += '\b'; break;
      case 'f': out += '\f'; break;
      case 'n': out += '\n'; break;
      case 'r': out += '\r'; break;
      case 't': out += '\t'; break;
      case 'v': out += '\v'; break;
      case 'x': hex(2); break;
      case 'u': hex(4); break;
      case 'U': hex(8); break;
      case 'N': syntax_error(pos, "character names (\\N{...}) are not supported");
      default:
        if (c >= '0' && c <= '7') {
          uint32_t code = 0;
          size_t n = 0;
          for (; n < 3 && i + n < s.size() && s[i + n] >= '0' && s[i + n] <= '7'; ++n) {
            code = code * 8 + static_cast<uint32_t>(s[i + n] - '0');
          }
          i += n - 1;
          append_utf8(out, code);
        } else {
          out += '\\';
          out += c;
        }
    }
  }
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) text_until_tag();
    emit(Tok::kEof, {});
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  bool looking_at(std::string_view s) const { return std::string_view(source_).substr(at_, s.size()) == s; }

  // Position of at_, found by walking on from the last one asked for.
  Pos pos() {
    for (; counted_ < at_; ++counted_) {
      if (source_[counted_] == '\n') {
        ++pos_.line;
        pos_.column = 1;
      } else if ((static_cast<unsigned char>(source_[counted_]) & 0xC0) != 0x80) {
        ++pos_.column;
      }
    }
    return pos_;
  }

  void emit(Tok type, std::string value) { tokens_.push_back({type, pos(), std::move(value)}); }

  void skip_space() {
    while (at_ < source_.size()) {
      const Char c = decode(source_, at_);
      if (!is_space(c.code)) break;
      at_ += c.bytes;
    }
  }

  // Where the text [begin, end) before a tag really ends: cut by "-" or by lstrip_blocks.
  size_t text_end(size_t begin, size_t end, char sign, bool variable, bool line_starting) const {
    const std::string_view s = source_;
    if (sign == '-') {
      while (end > begin) {
        const Char c = decode_before(s, end);
        if (!is_space(c.code)) break;
        end -= c.bytes;
      }
    } else if (sign != '+' && !variable) {
      const size_t newline = s.substr(begin, end - begin).rfind('\n');
      if (newline == std::string_view::npos && !line_starting) return end;
      const size_t line = newline == std::string_view::npos ? begin : begin + newline + 1;
      for (size_t i = line; i < end;) {
        const Char c = decode(s, i);
        if (!is_space(c.code)) return end;
        i += c.bytes;
      }
      return line;
    }
    return end;
  }

  void emit_text(size_t begin, size_t end) {
    if (begin < end) tokens_.push_back({Tok::kData, pos_, source_.substr(begin, end - begin)});
  }

  // Consumes "%}" with what follows it by its sign and trim_blocks; false when there is none here.
  bool tag_end(std::string_view close, bool trim_newline, bool allow_plus) {
    if (looking_at(close)) {
      at_ += close.size();
      if (trim_newline && peek() == '\n') ++at_;
    } else if (peek() == '-' && std::string_view(source_).substr(at_ + 1, close.size()) == close) {
      at_ += 1 + close.size();
      skip_space();
    } else if (allow_plus && peek() == '+' && std::string_view(source_).substr(at_ + 1, close.size()) == close) {
      at_ += 1 + close.size();
    } else {
      return false;
    }
    line_starting_ = source_[at_ - 1] == '\n';
    return true;
  }

  // At "{%": whether this is {% word %}; then at_ stands after it.
  bool raw_tag(std::string_view word, bool is_end) {
    const size_t saved = at_;
    at_ += 2;
    if (peek() == '-' || peek() == '+') ++at_;
    skip_space();
    if (looking_at(word)) {
      at_ += word.size();
      skip_space();
      if (tag_end("%}", is_end, is_end)) return true;
    }
    at_ = saved;
    return false;
  }

  void text_until_tag() {
    const size_t begin = at_;
    pos();
    size_t tag = begin;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos || tag + 1 >= source_.size()) {
        emit_text(begin, source_.size());
        at_ = source_.size();
        return;
      }
      const char kind = source_[tag + 1];
      if (kind == '%' || kind == '{' || kind == '#') break;
    }
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    emit_text(begin, text_end(begin, tag, sign, kind == '{', line_starting_));
    at_ = tag;
    const Pos start = pos();
    if (kind == '%' && raw_tag("raw", false)) {
      raw_body(start);
      return;
    }
    at_ += 2;
    if (sign == '-' || sign == '+') ++at_;
    if (kind == '#') {
      comment(start);
    } else {
      tokens_.push_back({kind == '%' ? Tok::kBlockBegin : Tok::kVariableBegin, start, {}});
      tag_body(kind == '%', start);
    }
  }

  void comment(Pos start) {
    if (at_ >= source_.size()) return;  // Jinja too only looks for the end when anything follows
    size_t close = source_.find("#}", at_);
    if (close == std::string::npos) syntax_error(start, "missing end of comment tag");
    if (close > at_ && (source_[close - 1] == '-' || source_[close - 1] == '+')) --close;
    at_ = close;
    tag_end("#}", true, true);
  }

  void raw_body(Pos start) {
    if (at_ >= source_.size()) return;
    const size_t begin = at_;
    const bool line_starting = line_starting_;
    for (size_t tag = begin;; ++tag) {
      tag = source_.find("{%", tag);
      if (tag == std::string::npos) syntax_error(start, "missing end of raw directive");
      at_ = tag;
      const char sign = peek(2);
      if (raw_tag("endraw", true)) {
        emit_text(begin, text_end(begin, tag, sign, false, line_starting));
        return;
      }
    }
  }

  void tag_body(bool block, Pos start) {
    std::string brackets;  // the closers still owed
    for (;;) {
      skip_space();
      if (at_ >= source_.size()) {
        syntax_error(start,
                     block ? "block tag is not closed, expected '%}'" : "expression is not closed, expected '}}'");
      }
      const Pos here = pos();
      if (brackets.empty() && tag_end(block ? "%}" : "}}", block, block)) {
        tokens_.push_back({block ? Tok::kBlockEnd : Tok::kVariableEnd, here, {}});
        return;
      }
      const char c = peek();
      if (digit(c)) {
        number(here);
      } else if (c == '\'' || c == '"') {
        string(here, c);
      } else if (!name(here)) {
        operator_token(here, brackets);
      }
    }
  }

  // (\d+_)*\d+ from `from`: the offset after it, or `from` when there is none.
  size_t digits(size_t from) const {
    size_t i = from;
    while (i < source_.size() && (digit(source_[i]) || (source_[i] == '_' && i > from && i + 1 < source_.size() &&
                                                        digit(source_[i - 1]) && digit(source_[i + 1])))) {
      ++i;
    }
    return i;
  }

  void number(Pos here) {
    const auto take = [&](Tok type, size_t end) {
      std::string text = source_.substr(at_, end - at_);
      std::erase(text, '_');
      at_ = end;
      tokens_.push_back({type, here, std::move(text)});
    };
    const auto at = [&](size_t i) { return i < source_.size() ? source_[i] : '\0'; };
    const size_t whole = digits(at_);
    if (at_ == 0 || source_[at_ - 1] != '.') {
      size_t end = whole;
      if (at(end) == '.' && digit(at(end + 1))) end = digits(end + 1);
      size_t exponent = end;
      if (at(exponent) == 'e' || at(exponent) == 'E') {
        ++exponent;
        if (at(exponent) == '+' || at(exponent) == '-') ++exponent;
        if (digit(at(exponent))) end = digits(exponent);
      }
      if (end != whole) return take(Tok::kFloat, end);
    }
    const char base = static_cast<char>(at(at_ + 1) | 0x20);
    if (at(at_) == '0' && (base == 'x' || base == 'o' || base == 'b')) {
      const auto valid = [&](char c) {
        return base == 'x' ? hex_digit(c) : base == 'o' ? (c >= '0' && c <= '7') : (c == '0' || c == '1');
      };
      size_t end = at_ + 2;
      while (valid(at(end)) || (at(end) == '_' && valid(at(end + 1)))) ++end;
      if (end > at_ + 2) return take(Tok::kInteger, end);
    }
    if (at(at_) == '0') {  // 0, 00, 0_0; "012" is two tokens, which no grammar rule joins
      size_t end = at_ + 1;
      while (at(end) == '0' || (at(end) == '_' && at(end + 1) == '0')) ++end;
      return take(Tok::kInteger, end);
    }
    take(Tok::kInteger, whole);
  }

  void string(Pos here, char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) syntax_error(here, fmt::format("string is not closed, expected {}", quote));
    tokens_.push_back({Tok::kString, here, unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1), here)});
    at_ = end + 1;
  }

  bool name(Pos here) {
    size_t end = at_;
    bool first = true;
    while (end < source_.size()) {
      const Char c = decode(source_, end);
      if (!(first ? is_identifier_start(c.code) : is_identifier_part(c.code))) break;
      end += c.bytes;
      first = false;
    }
    if (end == at_) return false;
    tokens_.push_back({Tok::kName, here, source_.substr(at_, end - at_)});
    at_ = end;
    return true;
  }

  void operator_token(Pos here, std::string& brackets) {
    static constexpr std::array<std::string_view, 26> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                                    "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                                    ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (std::string_view op : kOperators) {
      if (!looking_at(op)) continue;
      const char c = op[0];
      if (op.size() == 1 && (c == '(' || c == '[' || c == '{')) {
        brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
      } else if (c == ')' || c == ']' || c == '}') {
        if (brackets.empty()) syntax_error(here, fmt::format("unexpected '{}'", c));
        if (brackets.back() != c) syntax_error(here, fmt::format("unexpected '{}', expected '{}'", c, brackets.back()));
        brackets.pop_back();
      }
      at_ += op.size();
      tokens_.push_back({Tok::kOperator, here, std::string(op)});
      return;
    }
    const Char c = decode(source_, at_);
    syntax_error(here, fmt::format("unexpected character '{}'", source_.substr(at_, c.bytes)));
  }

  std::string source_;
  size_t at_ = 0;
  size_t counted_ = 0;  // pos_ is the position of this offset
  Pos pos_{1, 1};
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::string describe(const Token& token) {
  switch (token.type) {
    case Tok::kData: return "template text";
    case Tok::kVariableBegin: return "'{{'";
    case Tok::kVariableEnd: return "'}}'";
    case Tok::kBlockBegin: return "'{%'";
    case Tok::kBlockEnd: return "'%}'";
    case Tok::kName: return "'" + token.value + "'";
    case Tok::kString: return "a string";
    case Tok::kInteger:
    case Tok::kFloat: return "number " + token.value;
    case Tok::kOperator: return "'" + token.value + "'";
    case Tok::kEof: return "the end of the template";
  }
  return {};
}

std::vector<Token> tokenize(std::string_view source) { return Lexer(normalize_newlines(source)).run(); }

}  // namespace minfer::chat::jinja
