// Filters that lay text out in lines: wordwrap and pprint.
// Source: Python 3, textwrap.TextWrapper and pprint.PrettyPrinter.
#include <algorithm>

#include "chat/jinja/filters.h"
#include "chat/jinja/ops.h"
#include "chat/jinja/print.h"
#include "chat/jinja/str_ops.h"

namespace minfer::chat::jinja {

using Kind = Value::Kind;

namespace {

// One paragraph as characters, cut into chunks that lines are made of.
class Paragraph {
 public:
  Paragraph(Interp& in, const Text& text) : in_(in), text_(text) {
    const std::string_view s = text.view();
    in.step(1 + s.size() / 2);
    in.charge(s.size() * 16);
    for (size_t at = 0; at < s.size();) {
      const Char c = decode(s, at);
      codes_.push_back(c.code);
      offsets_.push_back(at);
      at += c.bytes;
    }
    offsets_.push_back(s.size());
    hyphens_end_.resize(codes_.size() + 1, codes_.size());
    for (size_t i = codes_.size(); i-- > 0;) hyphens_end_[i] = codes_[i] == '-' ? hyphens_end_[i + 1] : i;
  }

  std::vector<Text> wrap(int64_t width, bool break_long_words, bool break_on_hyphens, bool hyphens_are_true) {
    split(hyphens_are_true);
    std::reverse(chunks_.begin(), chunks_.end());
    std::vector<Text> lines;
    const auto limit = static_cast<size_t>(width);
    while (!chunks_.empty()) {
      in_.step();
      std::vector<Chunk> line;
      size_t used = 0;
      if (blank(chunks_.back()) && !lines.empty()) chunks_.pop_back();
      while (!chunks_.empty() && used + chunks_.back().size() <= limit) {
        line.push_back(chunks_.back());
        used += chunks_.back().size();
        chunks_.pop_back();
      }
      if (!chunks_.empty() && chunks_.back().size() > limit) {
        Chunk& chunk = chunks_.back();
        if (break_long_words) {
          size_t end = limit - used;
          if (break_on_hyphens) end = hyphen_end(chunk, end);
          line.push_back({chunk.begin, chunk.begin + end});
          chunk.begin += end;
        } else if (line.empty()) {
          line.push_back(chunk);
          chunks_.pop_back();
        }
      }
      if (!line.empty() && blank(line.back())) line.pop_back();
      if (line.empty()) continue;
      Text out;
      for (const Chunk& c : line) out.append_slice(text_, offsets_[c.begin], offsets_[c.end] - offsets_[c.begin]);
      lines.push_back(std::move(out));
    }
    return lines;
  }

 private:
  struct Chunk {
    size_t begin, end;
    size_t size() const { return end - begin; }
  };

  static bool white(uint32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  static bool word(uint32_t c) { return c == '_' || is_alpha(c) || is_numeric(c); }
  static bool letter(uint32_t c) { return word(c) && !is_decimal(c); }
  static bool word_or_mark(uint32_t c) {
    return word(c) || (c < 0x80 && std::string_view("!\"'&.,?").find(static_cast<char>(c)) != std::string_view::npos);
  }
  bool letter_at(size_t i) const { return i < codes_.size() && letter(codes_[i]); }

  bool blank(const Chunk& c) const {
    for (size_t i = c.begin; i < c.end; ++i) {
      if (!is_space(codes_[i])) return false;
    }
    return true;
  }

  // Two or more hyphens from i, then a word.
  bool dash(size_t i) const {
    const size_t end = hyphens_end_[i];
    return end - i >= 2 && end < codes_.size() && word(codes_[end]);
  }

  // A hyphen at i after which the word may be broken; `from` letters before it count even when they are cut off.
  bool breaks_after(size_t i) const {
    if (codes_[i] != '-' || i < 1 || !letter(codes_[i - 1]) || i < 2) return false;
    if (!letter(codes_[i - 2]) && !(codes_[i - 2] == '-' && i >= 3 && letter(codes_[i - 3]))) return false;
    if (!letter_at(i + 1)) return false;
    return letter_at(i + 2) || (i + 2 < codes_.size() && codes_[i + 2] == '-' && letter_at(i + 3));
  }

  void split(bool on_hyphens) {
    const size_t n = codes_.size();
    for (size_t at = 0; at < n;) {
      size_t end = at + 1;
      if (white(codes_[at])) {
        while (end < n && white(codes_[end])) ++end;
      } else if (on_hyphens && at > 0 && word_or_mark(codes_[at - 1]) && dash(at)) {
        end = hyphens_end_[at];
      } else {
        for (; end < n && !white(codes_[end]); ++end) {
          if (!on_hyphens) continue;
          if (breaks_after(end)) {
            ++end;
            break;
          }
          if (word_or_mark(codes_[end - 1]) && dash(end)) break;
        }
      }
      chunks_.push_back({at, end});
      at = end;
    }
  }

  // Where a chunk too long for the line is cut: after its last hyphen that fits and does not only follow hyphens.
  size_t hyphen_end(const Chunk& chunk, size_t space) const {
    for (size_t i = std::min(space, chunk.size()); i-- > 1;) {
      if (codes_[chunk.begin + i] != '-') continue;
      return hyphens_end_[chunk.begin] < chunk.begin + i ? i + 1 : space;
    }
    return space;
  }

  Interp& in_;
  const Text& text_;
  std::vector<uint32_t> codes_;
  std::vector<size_t> offsets_, hyphens_end_;
  std::vector<Chunk> chunks_;
};

}  // namespace

Value wordwrap(Interp& in, const Value& v, const Args& a) {
  const Params p("wordwrap", a, {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  refuse_undefined(v);
  if (!v.is_string()) raise_error("'{}' object has no attribute 'splitlines'", type_name(v));
  const int64_t width = p.integer(0, 79);
  const Text newline = p.has(2) && !p[2].is_none() ? p.text(2) : Text("\n", true);
  const bool hyphens_are_true = !p.has(3) || (p[3].is(Kind::kBool) && p[3].as_bool());
  Text out;
  bool first = true;
  for (const Value& line : split_lines(in, v, false)) {
    if (width <= 0) raise_error("invalid width {} (must be > 0)", width);
    if (!first) out.append(newline);
    first = false;
    bool first_part = true;
    for (const Text& part :
         Paragraph(in, line.as_text()).wrap(width, p.flag(1, true), p.flag(3, true), hyphens_are_true)) {
      in.charge(part.size() + newline.size());
      if (!first_part) out.append(newline);
      first_part = false;
      out.append(part);
    }
  }
  return in.text(std::move(out), is_safe(v) && p.has(2) && is_safe(p[2]));
}

namespace {

constexpr int64_t kPrettyWidth = 80;

class Pretty {
 public:
  explicit Pretty(Interp& in) : in_(in) {}

  Text run(const Value& v) {
    format(v, 0, 0, 0);
    return std::move(out_);
  }

 private:
  // repr() with the entries of dicts in the order of their keys.
  void repr(Text& out, const Value& v) {
    const Interp::Level level(in_);
    in_.step();
    if (v.is_dict()) {
      put(out, "{");
      bool first = true;
      for (const Dict::Entry* e : sorted(v.as_dict())) {
        if (!first) put(out, ", ");
        first = false;
        repr(out, e->first);
        put(out, ": ");
        repr(out, e->second);
      }
      return put(out, "}");
    }
    if (!v.is_sequence() || v.object<ListObject>()->is_range || v.object<ListObject>()->is_group) {
      return append_repr(in_, out, v);
    }
    const bool tuple = v.is(Kind::kTuple);
    put(out, tuple ? "(" : "[");
    for (size_t i = 0; i < v.items().size(); ++i) {
      if (i > 0) put(out, ", ");
      repr(out, v.items()[i]);
    }
    put(out, tuple ? (v.items().size() == 1 ? ",)" : ")") : "]");
  }

  // Keys that cannot be compared go by the names of their types.
  std::vector<const Dict::Entry*> sorted(const Dict& dict) {
    std::vector<const Dict::Entry*> out;
    for (const Dict::Entry& e : dict.entries()) out.push_back(&e);
    std::stable_sort(out.begin(), out.end(), [&](const auto* a, const auto* b) {
      in_.step();
      try {
        return order(in_, "<", a->first, b->first) == -1;
      } catch (const Raised& raised) {
        if (raised.code != ErrorCode::kInvalidArgument) throw;
        return std::string_view(type_name(a->first)) < type_name(b->first);
      }
    });
    return out;
  }

  void put(Text& out, std::string_view s) {
    in_.charge(s.size());
    out.append(s, true);
  }
  void new_line(int64_t indent) { put(out_, "\n" + std::string(static_cast<size_t>(indent), ' ')); }
  static int64_t chars(const Text& t) { return static_cast<int64_t>(count_chars(t.view())); }

  void format(const Value& v, int64_t indent, int64_t allowance, int level) {
    const Interp::Level nesting(in_);
    Text rep;
    repr(rep, v);
    const bool splits = v.is_dict() || (v.is_string() && !is_safe(v)) ||
                        (v.is_sequence() && !v.object<ListObject>()->is_range && !v.object<ListObject>()->is_group);
    if (chars(rep) <= kPrettyWidth - indent - allowance || !splits) {
      in_.charge(rep.size());
      out_.append(rep);
    } else if (v.is_dict()) {
      dict(v.as_dict(), indent, allowance + 1, level + 1);
    } else if (v.is_string()) {
      string(v, indent, allowance, level + 1);
    } else {
      const std::string_view close = !v.is(Kind::kTuple) ? "]" : v.items().size() == 1 ? ",)" : ")";
      put(out_, v.is(Kind::kTuple) ? "(" : "[");
      items(v.items(), indent + 1, allowance + static_cast<int64_t>(close.size()), level + 1);
      put(out_, close);
    }
  }

  void items(const std::vector<Value>& items, int64_t indent, int64_t allowance, int level) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) {
        put(out_, ",");
        new_line(indent);
      }
      format(items[i], indent, i + 1 == items.size() ? allowance : 1, level);
    }
  }

  void dict(const Dict& d, int64_t indent, int64_t allowance, int level) {
    put(out_, "{");
    const auto entries = sorted(d);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) {
        put(out_, ",");
        new_line(indent + 1);
      }
      Text key;
      repr(key, entries[i]->first);
      out_.append(key);
      put(out_, ": ");
      format(entries[i]->second, indent + 1 + chars(key) + 2, i + 1 == entries.size() ? allowance : 1, level);
    }
    put(out_, "}");
  }

  Text repr_of(const Text& t) {
    Text out;
    append_repr(in_, out, in_.text(t));
    return out;
  }

  // A long string becomes several literals, cut after lines and words.
  void string(const Value& v, int64_t indent, int64_t allowance, int level) {
    if (level == 1) ++indent, ++allowance;
    const int64_t width = kPrettyWidth - indent;
    std::vector<Text> pieces;
    const std::vector<Value> lines = split_lines(in_, v, true);
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool last_line = i + 1 == lines.size();
      const Text& line = lines[i].as_text();
      Text rep = repr_of(line);
      if (chars(rep) <= width - (last_line ? allowance : 0)) {
        pieces.push_back(std::move(rep));
        continue;
      }
      Text current;
      for (size_t at = 0; at < line.size();) {
        const size_t begin = at;
        while (at < line.size() && !is_space(decode(line.view(), at).code)) at += decode(line.view(), at).bytes;
        while (at < line.size() && is_space(decode(line.view(), at).code)) at += decode(line.view(), at).bytes;
        Text candidate = current;
        in_.charge(candidate.size());
        candidate.append_slice(line, begin, at - begin);
        const int64_t room = width - (last_line && at == line.size() ? allowance : 0);
        if (chars(repr_of(candidate)) > room) {
          if (!current.empty()) pieces.push_back(repr_of(current));
          current = line.slice(begin, at - begin);
        } else {
          current = std::move(candidate);
        }
      }
      if (!current.empty()) pieces.push_back(repr_of(current));
    }
    const bool parentheses = level == 1 && pieces.size() > 1;
    if (parentheses) put(out_, "(");
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0) new_line(indent);
      in_.charge(pieces[i].size());
      out_.append(pieces[i]);
    }
    if (parentheses) put(out_, ")");
  }

  Interp& in_;
  Text out_;
};

}  // namespace

Value pprint(Interp& in, const Value& v, const Args& a) {
  Params("pprint", a, {});
  in.step(v.weight());
  return in.text(Pretty(in).run(v));
}

}  // namespace minfer::chat::jinja
