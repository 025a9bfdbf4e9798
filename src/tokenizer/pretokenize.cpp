// See pretokenize.h. Each scanner takes the leftmost match at the position it stands at, alternatives in the order of
// the quoted expression, as the expression would.
#include "tokenizer/pretokenize.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "tokenizer/char_set.h"
#include "tokenizer/unicode.h"

namespace minfer {
namespace {

struct Unit {
  uint32_t cp;
  uint8_t kind;   // CharClass bits
  uint8_t bytes;  // 0 at the end of the piece
  bool is(unsigned mask) const { return (kind & mask) != 0; }
  bool newline() const { return cp == '\n' || cp == '\r'; }
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text), classes_(char_classes()) {}

  Unit at(size_t pos) const {
    if (pos >= text_.size()) return {0xffffffffu, kNone, 0};
    const auto b = static_cast<unsigned char>(text_[pos]);
    if (b < 0x80) return {b, classes_[b], 1};
    const CodePoint c = read_code_point(text_, pos);
    return {c.value, c.valid ? classes_[c.value] : static_cast<uint8_t>(kNone), static_cast<uint8_t>(c.bytes)};
  }
  // End of the run of units with a class in `mask`, from pos.
  size_t skip(size_t pos, unsigned mask) const {
    for (;;) {
      const Unit u = at(pos);
      if (!u.is(mask)) return pos;
      pos += u.bytes;
    }
  }
  // End of the run of units with no class in `mask`.
  size_t skip_not(size_t pos, unsigned mask) const {
    for (;;) {
      const Unit u = at(pos);
      if (u.bytes == 0 || u.is(mask)) return pos;
      pos += u.bytes;
    }
  }
  size_t size() const { return text_.size(); }

 private:
  std::string_view text_;
  const uint8_t* classes_;
};

// \s+(?!\S)|\s+  at a white-space unit: the run without its last unit where something follows it.
size_t match_space(const Scanner& s, size_t pos) {
  size_t last = pos;
  size_t end = pos;
  for (Unit u = s.at(end); u.is(kSpace); u = s.at(end)) {
    last = end;
    end += u.bytes;
  }
  return end == s.size() || last == pos ? end : last;
}

// \s*[\r\n]+|\s+(?!\S)|\s+  at a white-space unit: up to the last line break of the run, if it has one.
size_t match_space_or_newlines(const Scanner& s, size_t pos) {
  size_t end = pos;
  size_t after_newline = pos;
  for (Unit u = s.at(end); u.is(kSpace); u = s.at(end)) {
    end += u.bytes;
    if (u.newline()) after_newline = end;
  }
  return after_newline > pos ? after_newline : match_space(s, pos);
}

// 's|'t|'re|'ve|'m|'ll|'d  at an apostrophe: its end, or pos if there is none. Without case, U+017F folds to s.
size_t match_contraction(const Scanner& s, size_t pos, bool any_case) {
  const auto letter = [&](const Unit& u) -> uint32_t {
    if (!any_case) return u.cp;
    if (u.cp >= 'A' && u.cp <= 'Z') return u.cp + ('a' - 'A');
    return u.cp == 0x17f ? 's' : u.cp;
  };
  const Unit first = s.at(pos + 1);
  const size_t after_first = pos + 1 + first.bytes;
  const uint32_t a = letter(first);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return after_first;
  if (a == 'r' || a == 'v' || a == 'l') {
    const uint32_t b = letter(s.at(after_first));
    if (b == (a == 'l' ? 'l' : 'e')) return after_first + 1;
  }
  return pos;
}

// GPT-2:  's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t next_gpt2(const Scanner& s, size_t pos) {
  const Unit first = s.at(pos);
  if (first.cp == '\'') {
    const size_t end = match_contraction(s, pos, false);
    if (end > pos) return end;
  }
  const size_t word = first.cp == ' ' ? pos + 1 : pos;
  const Unit u = first.cp == ' ' ? s.at(word) : first;
  if (u.is(kLetter)) return s.skip(word + u.bytes, kLetter);
  if (u.is(kNumber)) return s.skip(word + u.bytes, kNumber);
  if (u.bytes != 0 && !u.is(kSpace)) return s.skip_not(word + u.bytes, kSpace | kLetter | kNumber);
  return match_space(s, pos);
}

// Llama 3, Qwen 2, Qwen 3.5:
//   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?W+|\p{N}{1,n}| ?[^\s W \p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
// with W = \p{L} or [\p{L}\p{M}].
template <unsigned kWord, int kDigits>
size_t next_words(const Scanner& s, size_t pos) {
  const Unit first = s.at(pos);
  if (first.cp == '\'') {
    const size_t end = match_contraction(s, pos, true);
    if (end > pos) return end;
  }
  if (first.is(kWord)) return s.skip(pos + first.bytes, kWord);
  if (first.is(kNumber)) {
    size_t end = pos + first.bytes;
    for (int i = 1; i < kDigits; ++i) {
      const Unit u = s.at(end);
      if (!u.is(kNumber)) break;
      end += u.bytes;
    }
    return end;
  }
  const size_t after = pos + first.bytes;
  const Unit second = s.at(after);
  if (!first.newline() && second.is(kWord)) return s.skip(after + second.bytes, kWord);
  constexpr unsigned kNoSymbol = kSpace | kWord | kNumber;
  const bool spaced = first.cp == ' ' && second.bytes != 0 && !second.is(kNoSymbol);
  if (spaced || !first.is(kSpace)) {
    size_t end = s.skip_not(after, kNoSymbol);
    for (Unit u = s.at(end); u.newline(); u = s.at(end)) ++end;
    return end;
  }
  return match_space_or_newlines(s, pos);
}

template <auto kNext>
void split_all(std::string_view text, uint32_t base, std::vector<Piece>& out) {
  const Scanner s(text);
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = kNext(s, pos);
    out.push_back({base + static_cast<uint32_t>(pos), base + static_cast<uint32_t>(end)});
    pos = end;
  }
}

// Appends the stretches between cuts.
class Cutter {
 public:
  Cutter(uint32_t base, std::vector<Piece>& out) : base_(base), out_(out) {}
  void cut(size_t at) {
    if (at > last_) out_.push_back({base_ + static_cast<uint32_t>(last_), base_ + static_cast<uint32_t>(at)});
    last_ = std::max(last_, at);
  }

 private:
  uint32_t base_;
  std::vector<Piece>& out_;
  size_t last_ = 0;
};

// \p{N}, each alone.
void split_each_number(std::string_view text, uint32_t base, std::vector<Piece>& out) {
  const Scanner s(text);
  Cutter cutter(base, out);
  for (size_t pos = 0; pos < text.size();) {
    const Unit u = s.at(pos);
    if (u.is(kNumber)) cutter.cut(pos);
    pos += u.bytes;
    if (u.is(kNumber)) cutter.cut(pos);
  }
  cutter.cut(text.size());
}

// [0-9][0-9][0-9], each match alone.
void split_digit_triples(std::string_view text, uint32_t base, std::vector<Piece>& out) {
  const auto digit = [&](size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  Cutter cutter(base, out);
  for (size_t i = 0; i < text.size();) {
    if (!(digit(i) && digit(i + 1) && digit(i + 2))) {
      ++i;
      continue;
    }
    cutter.cut(i);
    i += 3;
    cutter.cut(i);
  }
  cutter.cut(text.size());
}

const CharSet& decimal_digits() {
  static const CharSet set = *CharSet::property("Nd");
  return set;
}

const CharSet& word_characters() {
  static const CharSet set = CharSet::word();
  return set;
}

// Calls cut(begin of the run, its end, its digits' offsets) for every run of \d.
template <typename F>
void for_digit_runs(std::string_view text, F&& f) {
  const Scanner s(text);
  std::vector<size_t> starts;
  for (size_t pos = 0; pos < text.size();) {
    starts.clear();
    for (Unit u = s.at(pos); u.is(kNumber) && decimal_digits().contains(u.cp); u = s.at(pos)) {
      starts.push_back(pos);
      pos += u.bytes;
    }
    if (starts.empty())
      pos += s.at(pos).bytes;
    else
      f(starts, pos);
  }
}

// (?=(\d{3})+(?!\d)): a cut wherever the digits that follow are a multiple of three.
void split_thousands(std::string_view text, uint32_t base, std::vector<Piece>& out) {
  Cutter cutter(base, out);
  for_digit_runs(text, [&](const std::vector<size_t>& starts, size_t) {
    for (size_t i = starts.size() % 3; i < starts.size(); i += 3) cutter.cut(starts[i]);
  });
  cutter.cut(text.size());
}

// \d{1,3}(?=(?:\d{3})*\b): threes from the right of a number that no word character follows.
void split_grouped_digits(std::string_view text, uint32_t base, std::vector<Piece>& out) {
  const Scanner s(text);
  Cutter cutter(base, out);
  for_digit_runs(text, [&](const std::vector<size_t>& starts, size_t end) {
    const Unit after = s.at(end);
    if (after.bytes != 0 && word_characters().contains(after.cp)) return;
    cutter.cut(starts[0]);
    for (size_t i = starts.size() % 3; i < starts.size(); i += 3) cutter.cut(starts[i]);
    cutter.cut(end);
  });
  cutter.cut(text.size());
}

// The expressions that have a scanner, exactly as tokenizer.json files spell them.
struct Known {
  std::string_view regex;
  SplitStep::Scan scan;
};

constexpr Known kKnown[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", split_gpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     split_all<next_words<kLetter, 3>>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     split_all<next_words<kLetter, 1>>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     split_all<next_words<kLetter | kMark, 1>>},
    {R"(\p{N})", split_each_number},
    {"[0-9][0-9][0-9]", split_digit_triples},
    {R"((?=(\d{3})+(?!\d)))", split_thousands},
    {R"(\d{1,3}(?=(?:\d{3})*\b))", split_grouped_digits},
};

// A pattern may look at each byte this often on the average, and at so many more: beyond that the text makes its search
// quadratic. The named pre-tokenizers look at a byte less than four times.
constexpr uint64_t kWorkPerByte = 64;
constexpr uint64_t kWorkFree = uint64_t{1} << 20;

// What the parts that `part` is told of one after the other become.
class Joiner {
 public:
  Joiner(SplitHow how, std::vector<Piece>& out) : how_(how), out_(out), first_(out.size()) {}
  void part(uint32_t begin, uint32_t end, bool match) {
    if (begin == end) return;
    const bool any = out_.size() > first_;
    switch (how_) {
      case SplitHow::kIsolated: out_.push_back({begin, end}); break;
      case SplitHow::kRemoved:
        if (!match) out_.push_back({begin, end});
        break;
      case SplitHow::kContiguous:
        if (any && match == last_)
          out_.back().end = end;
        else
          out_.push_back({begin, end});
        break;
      case SplitHow::kMergedWithPrevious:
        if (any && match && !last_)
          out_.back().end = end;
        else
          out_.push_back({begin, end});
        break;
      case SplitHow::kMergedWithNext:  // of several matches in a row the last one is joined
        if (any && !match && last_)
          out_.back().end = end;
        else
          out_.push_back({begin, end});
        break;
    }
    last_ = match;
  }

 private:
  SplitHow how_;
  std::vector<Piece>& out_;
  size_t first_;
  bool last_ = false;
};

Status split_by_pattern(const SplitStep& step, std::string_view text, Piece piece, uint64_t& work,
                        std::vector<Piece>& out) {
  const std::string_view part = text.substr(piece.begin, piece.end - piece.begin);
  const uint64_t limit = kWorkFree + kWorkPerByte * text.size();
  Joiner joiner(step.how, out);
  uint32_t gap = 0;
  for (size_t pos = 0; pos < part.size();) {
    const size_t end = step.pattern->match(part, pos, work);
    if (end == Pattern::kNoMatch) {
      pos += read_code_point(part, pos).bytes;
    } else {
      joiner.part(piece.begin + gap, piece.begin + static_cast<uint32_t>(pos), step.invert);
      joiner.part(piece.begin + static_cast<uint32_t>(pos), piece.begin + static_cast<uint32_t>(end), !step.invert);
      gap = static_cast<uint32_t>(end);
      pos = end;
    }
    if (work > limit) {
      return make_error(ErrorCode::kUnsupported,
                        "[tokenizer] text of {} bytes: the pre-tokenizer's expression looks at its bytes more than {} "
                        "times each",
                        text.size(), kWorkPerByte);
    }
  }
  joiner.part(piece.begin + gap, piece.end, step.invert);
  return {};
}

}  // namespace

void split_gpt2(std::string_view text, uint32_t base, std::vector<Piece>& out) {
  split_all<next_gpt2>(text, base, out);
}

// Those characters are 0-9 and, for B2 B3 B9 (superscripts) and BC BD BE (fractions), themselves.
void split_byte_digits(std::string_view text, uint32_t base, std::vector<Piece>& out) {
  const auto numeric = [](char ch) {
    const auto c = static_cast<unsigned char>(ch);
    return (c >= '0' && c <= '9') || c == 0xb2 || c == 0xb3 || c == 0xb9 || (c >= 0xbc && c <= 0xbe);
  };
  Cutter cutter(base, out);
  for (size_t i = 1; i < text.size(); ++i) {
    if (numeric(text[i]) != numeric(text[i - 1])) cutter.cut(i);
  }
  cutter.cut(text.size());
}

Result<SplitStep> SplitStep::from_pattern(std::string_view regex, SplitHow how, bool invert) {
  SplitStep step;
  step.how = how;
  step.invert = invert;
  auto pattern = std::make_shared<Pattern>(MINFER_TRY(Pattern::compile(regex)));
  if (pattern->can_be_empty()) {
    return make_error(ErrorCode::kUnsupported, "[tokenizer] regular expression '{}' matches where there is nothing",
                      std::string(regex.substr(0, 200)));
  }
  step.pattern = std::move(pattern);
  return step;
}

Result<SplitStep> SplitStep::make(std::string_view regex, SplitHow how, bool invert) {
  for (const Known& known : kKnown) {
    if (known.regex != regex || how != SplitHow::kIsolated) continue;  // isolated: which part is the match is all one
    SplitStep step;
    step.scan = known.scan;
    return step;
  }
  return from_pattern(regex, how, invert);
}

Status pretokenize(const SplitStep& step, std::string_view text, std::vector<Piece>& pieces,
                   std::vector<Piece>& scratch) {
  scratch.swap(pieces);
  pieces.clear();
  uint64_t work = 0;
  for (const Piece piece : scratch) {
    if (piece.begin == piece.end) continue;
    if (step.scan)
      step.scan(text.substr(piece.begin, piece.end - piece.begin), piece.begin, pieces);
    else
      MINFER_TRY(split_by_pattern(step, text, piece, work, pieces));
  }
  return {};
}

}  // namespace minfer
