// See pretokenize.h. Each scanner takes the leftmost match at the position it stands at, alternatives in the order of
// the quoted pattern, as the regular expression would.
#include "tokenizer/pretokenize.h"

#include <algorithm>
#include <iterator>

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

// GPT-4o (o200k), U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], l = [\p{Ll}\p{Lm}\p{Lo}\p{M}], c = (?i:'s|'t|'re|'ve|'m|'ll|'d):
//   [^\r\n\p{L}\p{N}]?U*l+c?|[^\r\n\p{L}\p{N}]?U+l*c?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
// A word from `pos` on (its optional first unit taken): the end by the first alternative, or pos.
size_t match_lower_word(const Scanner& s, size_t pos) {
  constexpr unsigned kUpperSet = kUpper | kOtherLetter | kMark;
  constexpr unsigned kLowerSet = kLower | kOtherLetter | kMark;
  size_t end = pos;
  size_t last_both = pos;  // end of the last unit of the run of U that is in l too
  for (Unit u = s.at(end); u.is(kUpperSet); u = s.at(end)) {
    end += u.bytes;
    if (u.is(kLowerSet)) last_both = end;
  }
  if (s.at(end).is(kLowerSet)) return s.skip(end, kLowerSet);
  return last_both;  // the run gives units back until l can take one
}

size_t match_upper_word(const Scanner& s, size_t pos) {
  const size_t end = s.skip(pos, kUpper | kOtherLetter | kMark);
  return end == pos ? pos : s.skip(end, kLower | kOtherLetter | kMark);
}

size_t next_gpt4o(const Scanner& s, size_t pos) {
  const Unit first = s.at(pos);
  const bool may_prefix = !first.newline() && !first.is(kLetter | kNumber);
  const size_t after = pos + first.bytes;
  for (auto* match : {match_lower_word, match_upper_word}) {
    size_t end = may_prefix ? match(s, after) : pos;
    if (!may_prefix || end == after) {
      end = match(s, pos);
      if (end == pos) continue;
    }
    return s.at(end).cp == '\'' ? match_contraction(s, end, true) : end;
  }
  if (first.is(kNumber)) {
    size_t end = after;
    for (int i = 1; i < 3 && s.at(end).is(kNumber); ++i) end += s.at(end).bytes;
    return end;
  }
  constexpr unsigned kNoSymbol = kSpace | kLetter | kNumber;
  const Unit second = s.at(after);
  const bool spaced = first.cp == ' ' && second.bytes != 0 && !second.is(kNoSymbol);
  if (spaced || !first.is(kNoSymbol)) {
    size_t end = s.skip_not(after, kNoSymbol);
    for (Unit u = s.at(end); u.newline() || u.cp == '/'; u = s.at(end)) ++end;
    return end;
  }
  return match_space_or_newlines(s, pos);
}

template <auto kNext>
void split_all(std::string_view piece, uint32_t base, std::vector<uint32_t>& ends) {
  const Scanner s(piece);
  for (size_t pos = 0; pos < piece.size();) {
    pos = kNext(s, pos);
    ends.push_back(base + static_cast<uint32_t>(pos));
  }
}

// Isolates each match of  \s?X+  (kSpaced),  X+  (kRun)  or  X  (kOne); what lies between stays whole.
enum class Isolate { kSpaced, kRun, kOne };
template <Isolate kHow, auto kIn>
void split_isolated(std::string_view piece, uint32_t base, std::vector<uint32_t>& ends) {
  const Scanner s(piece);
  size_t gap = 0;  // start of what is not yet emitted
  const auto cut = [&](size_t pos) {
    if (pos > gap) ends.push_back(base + static_cast<uint32_t>(pos));
    gap = pos;
  };
  for (size_t pos = 0; pos < piece.size();) {
    const Unit first = s.at(pos);
    size_t end = pos + first.bytes;
    if (!kIn(first)) {
      // A space that is itself in X is handled as the first of X below.
      if (kHow != Isolate::kSpaced || !first.is(kSpace) || !kIn(s.at(end))) {
        pos = end;
        continue;
      }
    }
    if (kHow != Isolate::kOne) {
      for (Unit u = s.at(end); u.bytes != 0 && kIn(u); u = s.at(end)) end += u.bytes;
    }
    cut(pos);
    cut(end);
    pos = end;
  }
  cut(piece.size());
}

bool in(const Unit& u, uint32_t first, uint32_t last) { return u.cp >= first && u.cp <= last; }
bool is_newline(const Unit& u) { return u.newline(); }
bool is_letter(const Unit& u) { return u.is(kLetter); }
bool is_number(const Unit& u) { return u.is(kNumber); }
bool is_punct(const Unit& u) { return u.is(kPunct); }
// Hugging Face's Punctuation: Unicode's P and all of ASCII's signs.
bool is_any_punct(const Unit& u) { return u.is(kPunct) || (u.cp < 0x80 && u.is(kSymbol)); }
// [\p{P}\$\+<=>\^~\|]
bool is_default_punct(const Unit& u) { return is_any_punct(u) && u.cp != '`'; }
// [一-龥ࠀ-一가-퟿]: the DeepSeek tokenizers' words of East Asian (and what lies between U+0800 and U+4E00)
bool is_deepseek_cjk(const Unit& u) { return in(u, 0x4e00, 0x9fa5) || in(u, 0x800, 0x4e00) || in(u, 0xac00, 0xd7ff); }
// [!-/:-~！-／：-～‘-‟　-。]
bool is_deepseek_sign(const Unit& u) {
  return in(u, 0x21, 0x2f) || in(u, 0x3a, 0x7e) || in(u, 0xff01, 0xff0f) || in(u, 0xff1a, 0xff5e) ||
         in(u, 0x2018, 0x201f) || in(u, 0x3000, 0x3002);
}

struct CodeRange {
  uint32_t first, last;
};
constexpr CodeRange kDeepseekLetters[] = {
#include "tokenizer/deepseek_letters.inc"
};

bool is_deepseek_letter(const Unit& u) {
  const auto* r = std::upper_bound(std::begin(kDeepseekLetters), std::end(kDeepseekLetters), u.cp,
                                   [](uint32_t cp, const CodeRange& range) { return cp < range.first; });
  return r != std::begin(kDeepseekLetters) && u.cp <= r[-1].last;
}

// \s+$  at the end of a piece (which holds no line break beside others: those were cut out before).
void split_trailing_space(std::string_view piece, uint32_t base, std::vector<uint32_t>& ends) {
  const Scanner s(piece);
  size_t start = 0;
  for (size_t pos = 0; pos < piece.size();) {
    const Unit u = s.at(pos);
    pos += u.bytes;
    if (!u.is(kSpace)) start = pos;
  }
  if (start > 0 && start < piece.size()) ends.push_back(base + static_cast<uint32_t>(start));
  ends.push_back(base + static_cast<uint32_t>(piece.size()));
}

// Falcon's Digits step runs after its byte mapping, so it sees bytes: those whose stand-in character is numeric are
// 0-9 and B2 B3 B9 (superscripts), BC BD BE (fractions). Runs of them are cut from runs of the others.
void split_falcon_digits(std::string_view piece, uint32_t base, std::vector<uint32_t>& ends) {
  const auto numeric = [](char ch) {
    const auto c = static_cast<unsigned char>(ch);
    return (c >= '0' && c <= '9') || c == 0xb2 || c == 0xb3 || c == 0xb9 || (c >= 0xbc && c <= 0xbe);
  };
  for (size_t i = 1; i < piece.size(); ++i) {
    if (numeric(piece[i]) != numeric(piece[i - 1])) ends.push_back(base + static_cast<uint32_t>(i));
  }
  ends.push_back(base + static_cast<uint32_t>(piece.size()));
}

// [0-9][0-9][0-9], each match isolated.
void split_digit_triples(std::string_view piece, uint32_t base, std::vector<uint32_t>& ends) {
  const auto digit = [&](size_t i) { return i < piece.size() && piece[i] >= '0' && piece[i] <= '9'; };
  size_t gap = 0;
  for (size_t i = 0; i < piece.size();) {
    if (!(digit(i) && digit(i + 1) && digit(i + 2))) {
      ++i;
      continue;
    }
    if (i > gap) ends.push_back(base + static_cast<uint32_t>(i));
    i += 3;
    gap = i;
    ends.push_back(base + static_cast<uint32_t>(i));
  }
  if (piece.size() > gap) ends.push_back(base + static_cast<uint32_t>(piece.size()));
}

constexpr SplitStep kEachDigit = split_isolated<Isolate::kOne, is_number>;
constexpr SplitStep kGpt2 = split_all<next_gpt2>;

constexpr SplitStep kGpt2Steps[] = {kGpt2};
constexpr SplitStep kLlama3Steps[] = {split_all<next_words<kLetter, 3>>};
constexpr SplitStep kQwen2Steps[] = {split_all<next_words<kLetter, 1>>};
constexpr SplitStep kQwen35Steps[] = {split_all<next_words<kLetter | kMark, 1>>};
constexpr SplitStep kGpt4oSteps[] = {split_all<next_gpt4o>};
constexpr SplitStep kDigitGpt2Steps[] = {kEachDigit, kGpt2};
constexpr SplitStep kFalconSteps[] = {split_isolated<Isolate::kRun, is_any_punct>, kGpt2, split_falcon_digits,
                                      split_digit_triples};
constexpr SplitStep kDefaultSteps[] = {split_isolated<Isolate::kRun, is_default_punct>, kGpt2,
                                       split_isolated<Isolate::kRun, is_number>, split_digit_triples};
constexpr SplitStep kDeepseekLlmSteps[] = {
    split_isolated<Isolate::kOne, is_newline>,          split_isolated<Isolate::kSpaced, is_deepseek_letter>,
    split_isolated<Isolate::kSpaced, is_deepseek_sign>, split_trailing_space,
    split_isolated<Isolate::kRun, is_deepseek_cjk>,     kEachDigit};
constexpr SplitStep kDeepseekCoderSteps[] = {
    split_isolated<Isolate::kOne, is_newline>, split_isolated<Isolate::kSpaced, is_letter>,
    split_isolated<Isolate::kSpaced, is_punct>, split_isolated<Isolate::kRun, is_deepseek_cjk>, kEachDigit};

// Sorted by name. `default` serves files that name no pre-tokenizer.
constexpr Pretokenizer kPretokenizers[] = {
    {.name = "command-r", .steps = kDigitGpt2Steps, .nfc = true},
    {.name = "deepseek-coder", .steps = kDeepseekCoderSteps},
    {.name = "deepseek-llm", .steps = kDeepseekLlmSteps},
    {.name = "deepseek-r1-qwen", .steps = kQwen2Steps},
    {.name = "default", .steps = kDefaultSteps},
    {.name = "falcon", .steps = kFalconSteps},
    {.name = "gpt-2", .steps = kGpt2Steps},
    {.name = "gpt-4o", .steps = kGpt4oSteps},
    {.name = "gpt2", .steps = kGpt2Steps},
    {.name = "llama-bpe", .steps = kLlama3Steps, .ignore_merges = true, .add_bos = true},
    {.name = "llama-v3", .steps = kLlama3Steps, .ignore_merges = true, .add_bos = true},
    {.name = "llama3", .steps = kLlama3Steps, .ignore_merges = true, .add_bos = true},
    {.name = "mpt", .steps = kGpt2Steps, .nfc = true},
    {.name = "olmo", .steps = kGpt2Steps, .nfc = true},
    {.name = "qwen2", .steps = kQwen2Steps, .nfc = true},
    {.name = "qwen35", .steps = kQwen35Steps, .nfc = true},
    {.name = "refact", .steps = kDigitGpt2Steps},
    {.name = "smollm", .steps = kDigitGpt2Steps},
    {.name = "starcoder", .steps = kDigitGpt2Steps},
};

}  // namespace

const Pretokenizer* find_pretokenizer(std::string_view name) {
  const auto* it = std::find_if(std::begin(kPretokenizers), std::end(kPretokenizers),
                                [&](const Pretokenizer& p) { return p.name == name; });
  return it == std::end(kPretokenizers) ? nullptr : it;
}

std::string pretokenizer_names() {
  std::string names;
  for (const Pretokenizer& p : kPretokenizers) {
    if (!names.empty()) names += ", ";
    names += p.name;
  }
  return names;
}

void pretokenize(const Pretokenizer& pre, std::string_view text, std::vector<uint32_t>& ends,
                 std::vector<uint32_t>& scratch) {
  ends.clear();
  if (text.empty()) return;
  ends.push_back(static_cast<uint32_t>(text.size()));
  for (const SplitStep step : pre.steps) {
    scratch.swap(ends);
    ends.clear();
    uint32_t start = 0;
    for (const uint32_t end : scratch) {
      step(text.substr(start, end - start), start, ends);
      start = end;
    }
  }
}

}  // namespace minfer
