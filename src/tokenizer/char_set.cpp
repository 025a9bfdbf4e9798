// See char_set.h.
#include "tokenizer/char_set.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "tokenizer/unicode.h"

namespace minfer {
namespace {

enum class Script : uint8_t {
  kHan,
  kHiragana,
  kKatakana,
  kHangul,
  kBopomofo,
  kLatin,
  kCyrillic,
  kGreek,
  kArabic,
  kHebrew,
  kThai,
  kLao,
  kKhmer,
  kMyanmar,
  kDevanagari,
  kBengali,
  kTamil,
  kTelugu,
  kAlphabetic,
  kWord,
};

constexpr std::string_view kScriptNames[] = {
    "Han",  "Hiragana", "Katakana", "Hangul",  "Bopomofo",   "Latin",   "Cyrillic", "Greek",  "Arabic",     "Hebrew",
    "Thai", "Lao",      "Khmer",    "Myanmar", "Devanagari", "Bengali", "Tamil",    "Telugu", "Alphabetic", "Word"};

struct ScriptRange {
  uint32_t first, last;
  Script script;
};

constexpr ScriptRange kScriptRanges[] = {
#include "tokenizer/unicode_scripts.inc"
};

CharSet script_set(Script script) {
  CharSet set;
  for (const ScriptRange& r : kScriptRanges) {
    if (r.script == script) set.add({r.first, r.last});
  }
  return set;
}

}  // namespace

std::optional<CharSet> CharSet::property(std::string_view name) {
  std::vector<CodeRange> ranges;
  if (name.size() == 1 || name.size() == 2) {
    for (const CategoryRange& r : category_ranges()) {
      const std::string_view category = category_name(r.category);
      if (category.substr(0, name.size()) != name) continue;
      if (!ranges.empty() && ranges.back().last + 1 == r.first)
        ranges.back().last = r.last;
      else
        ranges.push_back({r.first, r.last});
    }
    if (!ranges.empty()) return CharSet(std::move(ranges));
    return std::nullopt;
  }
  const auto* it = std::find(std::begin(kScriptNames), std::end(kScriptNames), name);
  if (it == std::end(kScriptNames)) return std::nullopt;
  return script_set(static_cast<Script>(it - std::begin(kScriptNames)));
}

CharSet CharSet::space() {
  std::vector<CodeRange> ranges;
  for (const CodeRange& r : white_space_ranges()) ranges.push_back(r);
  return CharSet(std::move(ranges));
}

CharSet CharSet::word() { return script_set(Script::kWord); }

CharSet CharSet::unicode_word() {
  CharSet set = script_set(Script::kAlphabetic);
  for (const char* name : {"M", "Nd", "Pc"}) set.add(*property(name));
  set.add({0x200c, 0x200d});  // joiners
  return set;
}

bool CharSet::contains(uint32_t cp) const {
  const auto it =
      std::upper_bound(ranges_.begin(), ranges_.end(), cp, [](uint32_t c, const CodeRange& r) { return c < r.first; });
  return it != ranges_.begin() && cp <= it[-1].last;
}

uint32_t CharSet::size() const {
  uint32_t n = 0;
  for (const CodeRange& r : ranges_) n += r.last - r.first + 1;
  return n;
}

void CharSet::add(const CharSet& other) {
  if (!ranges_.empty() && other.ranges_.size() == 1 && other.ranges_[0].first > ranges_.back().last + 1) {
    ranges_.push_back(other.ranges_[0]);  // building in order
    return;
  }
  std::vector<CodeRange> both;
  both.reserve(ranges_.size() + other.ranges_.size());
  std::merge(ranges_.begin(), ranges_.end(), other.ranges_.begin(), other.ranges_.end(), std::back_inserter(both),
             [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
  ranges_.clear();
  for (const CodeRange& r : both) {
    if (!ranges_.empty() && r.first <= ranges_.back().last + 1)
      ranges_.back().last = std::max(ranges_.back().last, r.last);
    else
      ranges_.push_back(r);
  }
}

CharSet CharSet::complement() const {
  std::vector<CodeRange> out;
  uint32_t next = 0;
  for (const CodeRange& r : ranges_) {
    if (r.first > next) out.push_back({next, r.first - 1});
    next = r.last + 1;
  }
  if (next <= kMaxCodePoint) out.push_back({next, kMaxCodePoint});
  return CharSet(std::move(out));
}

CharSet CharSet::intersection(const CharSet& other) const {
  std::vector<CodeRange> out;
  for (size_t i = 0, j = 0; i < ranges_.size() && j < other.ranges_.size();) {
    const CodeRange &a = ranges_[i], &b = other.ranges_[j];
    const uint32_t first = std::max(a.first, b.first), last = std::min(a.last, b.last);
    if (first <= last) out.push_back({first, last});
    if (a.last < b.last)
      ++i;
    else
      ++j;
  }
  return CharSet(std::move(out));
}

CharSet CharSet::any_case() const {
  std::vector<uint32_t> extra;
  for (const CodeRange& r : ranges_) {
    for (uint32_t cp = r.first; cp <= r.last; ++cp) {
      const auto c = static_cast<int32_t>(cp);
      for (const int32_t other : {utf8proc_tolower(c), utf8proc_toupper(c), utf8proc_totitle(c)}) {
        if (other != c && other > 0) extra.push_back(static_cast<uint32_t>(other));
      }
      // The letters outside ASCII whose lower or upper case is an ASCII letter.
      if (cp == 's' || cp == 'S') extra.push_back(0x17f);
      if (cp == 'k' || cp == 'K') extra.push_back(0x212a);
    }
  }
  CharSet out = *this;
  std::sort(extra.begin(), extra.end());
  CharSet more;
  for (const uint32_t cp : extra) more.add(CharSet(cp));
  out.add(more);
  return out;
}

bool CharSet::operator==(const CharSet& other) const {
  return std::equal(ranges_.begin(), ranges_.end(), other.ranges_.begin(), other.ranges_.end(),
                    [](const CodeRange& a, const CodeRange& b) { return a.first == b.first && a.last == b.last; });
}

}  // namespace minfer
