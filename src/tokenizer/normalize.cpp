// See normalize.h.
#include "tokenizer/normalize.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/error.h"
#include "tokenizer/char_set.h"
#include "tokenizer/unicode.h"

namespace minfer {
namespace {

constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581
constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";
constexpr size_t kMaxBytes = (size_t{1} << 32) - 1;  // offsets within a text have 32 bits

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// Calls f(code point, its bytes as written) for every character; broken bytes as they are through `out`.
template <typename F>
void for_characters(std::string_view text, std::string& out, F&& f) {
  for (size_t pos = 0; pos < text.size();) {
    const CodePoint c = read_code_point(text, pos);
    const std::string_view bytes = text.substr(pos, c.bytes);
    if (c.valid)
      f(c.value, bytes);
    else
      out += bytes;
    pos += c.bytes;
  }
}

void append_lower(uint32_t cp, std::string& out) {
  if (cp == 0x130) {  // the one character whose lower case is two
    out += "i\xcc\x87";
    return;
  }
  append_utf8(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<int32_t>(cp))));
}

const CharSet& marks() {
  static const CharSet set = *CharSet::property("M");
  return set;
}
const CharSet& nonspacing_marks() {
  static const CharSet set = *CharSet::property("Mn");
  return set;
}
const CharSet& others() {
  static const CharSet set = [] {
    CharSet s = *CharSet::property("C");
    CharSet assigned = s;
    for (const char* name : {"L", "M", "N", "P", "S", "Z"}) assigned.add(*CharSet::property(name));
    s.add(assigned.complement());
    return s;
  }();
  return set;
}

bool is_space(uint32_t cp) { return (char_classes()[cp] & kSpace) != 0; }

// The ideographs that BERT puts spaces around. (0x2b920 is what its own list has.)
bool is_chinese(uint32_t cp) {
  return (cp >= 0x4e00 && cp <= 0x9fff) || (cp >= 0x3400 && cp <= 0x4dbf) || (cp >= 0x20000 && cp <= 0x2a6df) ||
         (cp >= 0x2a700 && cp <= 0x2b73f) || (cp >= 0x2b740 && cp <= 0x2b81f) || (cp >= 0x2b920 && cp <= 0x2ceaf) ||
         (cp >= 0xf900 && cp <= 0xfaff) || (cp >= 0x2f800 && cp <= 0x2fa1f);
}

std::string bert(const Normalizer& n, std::string_view text) {
  std::string out;
  for_characters(text, out, [&](uint32_t cp, std::string_view bytes) {
    if (n.clean) {
      const bool line = cp == '\t' || cp == '\n' || cp == '\r';
      if (cp == 0 || cp == 0xfffd || (!line && cp >= 0x7f && others().contains(cp)) || (!line && cp < 0x20)) return;
      if (is_space(cp)) {
        out += ' ';
        return;
      }
    }
    if (n.chinese && is_chinese(cp)) {
      out += ' ';
      out += bytes;
      out += ' ';
      return;
    }
    out += bytes;
  });
  if (n.strip_accents && !is_ascii(out)) {
    const std::string decomposed = to_normal_form(out, {.compose = false});
    out.clear();
    for_characters(decomposed, out, [&](uint32_t cp, std::string_view bytes) {
      if (cp < 0x80 || !nonspacing_marks().contains(cp)) out += bytes;
    });
  }
  if (!n.lowercase) return out;
  std::string lower;
  for_characters(out, lower, [&](uint32_t cp, std::string_view) { append_lower(cp, lower); });
  return lower;
}

Status replace(const Normalizer& n, std::string_view text, std::string& out) {
  if (!n.pattern) {
    size_t pos = 0;
    for (size_t at = text.find(n.from); at != std::string_view::npos; at = text.find(n.from, pos)) {
      out += text.substr(pos, at - pos);
      out += n.to;
      pos = at + n.from.size();
      if (out.size() > kMaxBytes) break;  // refused by the caller
    }
    out += text.substr(pos);
    return {};
  }
  uint64_t work = 0;
  for (size_t pos = 0; pos < text.size() && out.size() <= kMaxBytes;) {
    const size_t end = n.pattern->match(text, pos, work);
    if (end == Pattern::kNoMatch) {
      const size_t bytes = read_code_point(text, pos).bytes;
      out += text.substr(pos, bytes);
      pos += bytes;
    } else {
      out += n.to;
      pos = end;
    }
    if (work > (uint64_t{1} << 20) + 64 * text.size()) {
      return make_error(ErrorCode::kUnsupported,
                        "[tokenizer] text of {} bytes: the normalizer's expression looks at its bytes more than 64 "
                        "times each",
                        text.size());
    }
  }
  return {};
}

std::string_view strip(const Normalizer& n, std::string_view text) {
  size_t begin = 0, end = 0;
  bool seen = false;
  for (size_t pos = 0; pos < text.size();) {
    const CodePoint c = read_code_point(text, pos);
    if (!c.valid || !is_space(c.value)) {
      if (!seen) begin = pos;
      seen = true;
      end = pos + c.bytes;
    }
    pos += c.bytes;
  }
  if (!seen) return n.left || n.right ? std::string_view() : text;
  if (!n.left) begin = 0;
  if (!n.right) end = text.size();
  return text.substr(begin, end - begin);
}

void nmt(std::string_view text, std::string& out) {
  for_characters(text, out, [&](uint32_t cp, std::string_view bytes) {
    const bool gone =
        (cp >= 1 && cp <= 8) || cp == 0xb || (cp >= 0xe && cp <= 0x1f) || cp == 0x7f || cp == 0x8f || cp == 0x9f;
    const bool space = cp == 9 || cp == 0xa || cp == 0xc || cp == 0xd || cp == 0x1680 ||
                       (cp >= 0x200b && cp <= 0x200f) || cp == 0x2028 || cp == 0x2029 || cp == 0x2581 || cp == 0xfeff ||
                       cp == 0xfffd;
    if (gone) return;
    if (space)
      out += ' ';
    else
      out += bytes;
  });
}

// A grapheme of fewer than 6 bytes is replaced by what the table has for its shortest prefix; of a longer one each
// character alone. (That is what Hugging Face does; SentencePiece itself goes by the longest entry.)
void precompiled(const Charsmap& map, std::string_view text, std::string& out) {
  constexpr size_t kShortGrapheme = 6;
  const auto one = [&](std::string_view bytes) {
    const auto m = map.shortest(bytes);
    out += m.bytes > 0 ? m.to : bytes;
  };
  for (size_t pos = 0; pos < text.size();) {
    const CodePoint first = read_code_point(text, pos);
    size_t end = pos + first.bytes;
    int32_t state = 0, previous = static_cast<int32_t>(first.value);
    while (first.valid && end < text.size()) {
      const CodePoint next = read_code_point(text, end);
      if (!next.valid || utf8proc_grapheme_break_stateful(previous, static_cast<int32_t>(next.value), &state)) break;
      previous = static_cast<int32_t>(next.value);
      end += next.bytes;
    }
    const std::string_view grapheme = text.substr(pos, end - pos);
    const auto m = grapheme.size() < kShortGrapheme ? map.shortest(grapheme) : Charsmap::Match{};
    if (m.bytes > 0) {
      out += m.to;
    } else if (!first.valid) {
      out += grapheme;
    } else {
      for (size_t at = pos; at < end;) {
        const size_t bytes = read_code_point(text, at).bytes;
        one(text.substr(at, bytes));
        at += bytes;
      }
    }
    pos = end;
  }
}

void sentencepiece(const Normalizer& n, std::string_view text, std::string& out) {
  bool any = false, space = n.collapse;  // `space`: the character before is one (or the start)
  const auto put = [&](std::string_view bytes) {
    for (size_t i = 0; i < bytes.size();) {
      if (bytes[i] == ' ') {
        if (!(n.collapse && space)) {
          if (!any && n.prefix) out += kSpaceMark;
          out += kSpaceMark;
          any = true;
        }
        space = true;
        ++i;
        continue;
      }
      if (!any && n.prefix) out += kSpaceMark;
      any = true;
      space = false;
      out += bytes[i++];
    }
  };
  for (size_t pos = 0; pos < text.size();) {
    if (n.map) {
      if (const auto m = n.map->longest(text.substr(pos)); m.bytes > 0) {
        put(m.to);
        pos += m.bytes;
        continue;
      }
    }
    const CodePoint c = read_code_point(text, pos);
    put(c.valid ? text.substr(pos, c.bytes) : kReplacementCharacter);
    pos += c.bytes;
  }
  if (n.collapse) {
    while (out.size() >= kSpaceMark.size() &&
           std::string_view(out).substr(out.size() - kSpaceMark.size()) == kSpaceMark)
      out.resize(out.size() - kSpaceMark.size());
  }
}

Result<std::string_view> apply(const Normalizer& n, std::string_view text, std::string& out) {
  using Kind = Normalizer::Kind;
  out.clear();
  switch (n.kind) {
    case Kind::kNfc:
      if (surely_nfc(text)) return text;
      out = to_nfc(text);
      return std::string_view(out);
    case Kind::kNfd:
    case Kind::kNfkc:
    case Kind::kNfkd:
      if (is_ascii(text)) return text;
      out = to_normal_form(text, {.compose = n.kind == Kind::kNfkc, .compatible = n.kind != Kind::kNfd});
      return std::string_view(out);
    case Kind::kLowercase:
      for_characters(text, out, [&](uint32_t cp, std::string_view) { append_lower(cp, out); });
      return std::string_view(out);
    case Kind::kStripAccents:
      if (is_ascii(text)) return text;
      for_characters(text, out, [&](uint32_t cp, std::string_view bytes) {
        if (!marks().contains(cp)) out += bytes;
      });
      return std::string_view(out);
    case Kind::kBert: out = bert(n, text); return std::string_view(out);
    case Kind::kReplace: MINFER_TRY(replace(n, text, out)); return std::string_view(out);
    case Kind::kPrepend:
      if (text.empty()) return text;
      out = n.to;
      out += text;
      return std::string_view(out);
    case Kind::kStrip: return strip(n, text);
    case Kind::kNmt: nmt(text, out); return std::string_view(out);
    case Kind::kPrecompiled: precompiled(*n.map, text, out); return std::string_view(out);
    case Kind::kSentencePiece: sentencepiece(n, text, out); return std::string_view(out);
  }
  return text;
}

}  // namespace

Result<std::string_view> normalize(const std::vector<Normalizer>& steps, std::string_view text, std::string& buffer,
                                   std::string& scratch) {
  for (const Normalizer& step : steps) {
    text = MINFER_TRY(apply(step, text, scratch));
    if (text.size() > kMaxBytes) {
      return make_error(ErrorCode::kInvalidArgument,
                        "[tokenizer] text: {} bytes after normalization, expected at most {}", text.size(), kMaxBytes);
    }
    // A view of what is left of a text stays valid: `scratch` and `buffer` change places only when it was written.
    const bool in_scratch = text.data() >= scratch.data() && text.data() <= scratch.data() + scratch.size();
    if (in_scratch && !text.empty()) {
      const size_t begin = static_cast<size_t>(text.data() - scratch.data()), bytes = text.size();
      buffer.swap(scratch);
      text = std::string_view(buffer).substr(begin, bytes);
    }
  }
  return text;
}

}  // namespace minfer
