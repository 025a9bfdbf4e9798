// See unicode.h.
#include "tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/error.h"

namespace minfer {
namespace {

constexpr CategoryRange kCategoryRanges[] = {
#include "tokenizer/unicode_categories.inc"
};

constexpr std::string_view kCategoryNames[] = {"Cc", "Cf", "Co", "Cs", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc",
                                               "Me", "Mn", "Nd", "Nl", "No", "Pc", "Pd", "Pe", "Pf", "Pi",
                                               "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs"};

constexpr CodeRange kWhiteSpace[] = {{0x09, 0x0d},     {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},
                                     {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
                                     {0x205f, 0x205f}, {0x3000, 0x3000}};

constexpr size_t kCodePoints = 0x110000;

CharClass class_of(Category category) {
  switch (category) {
    case kLu:
    case kLt: return kUpper;
    case kLl: return kLower;
    case kLm:
    case kLo: return kOtherLetter;
    default: break;
  }
  switch (kCategoryNames[category][0]) {
    case 'M': return kMark;
    case 'N': return kNumber;
    case 'P': return kPunct;
    case 'S': return kSymbol;
    default: return kNone;
  }
}

std::unique_ptr<uint8_t[]> build_classes() {
  auto table = std::make_unique<uint8_t[]>(kCodePoints);
  for (const CategoryRange& r : kCategoryRanges) {
    std::memset(table.get() + r.first, class_of(r.category), r.last - r.first + 1);
  }
  for (const CodeRange& r : kWhiteSpace) std::memset(table.get() + r.first, kSpace, r.last - r.first + 1);
  return table;
}

// Decomposition, ordering and composition of one well-formed run. utf8proc's own ordering step swaps
// neighbours (quadratic in the length of a run of marks), so the marks are sorted here.
void append_normal(std::string_view run, NormalForm form, std::string& out) {
  struct Unit {
    int32_t cp;
    int16_t order;  // canonical combining class
  };
  // The longest canonical decomposition has 4 code points, the longest of the others 18.
  constexpr int kMaxParts = 18;
  int options = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE;
  if (form.compatible) options |= UTF8PROC_COMPAT;
  std::vector<Unit> units;
  units.reserve(run.size());
  for (size_t pos = 0; pos < run.size();) {
    const CodePoint c = read_code_point(run, pos);
    pos += c.bytes;
    if (c.value < (form.compatible ? 0x80u : 0xc0u)) {
      units.push_back({static_cast<int32_t>(c.value), 0});
      continue;
    }
    int32_t parts[kMaxParts];
    int boundary = 0;
    const auto n = utf8proc_decompose_char(static_cast<int32_t>(c.value), parts, kMaxParts,
                                           static_cast<utf8proc_option_t>(options), &boundary);
    MINFER_CHECK(n >= 0 && n <= kMaxParts);
    for (int i = 0; i < n; ++i) {
      units.push_back({parts[i], static_cast<int16_t>(utf8proc_get_property(parts[i])->combining_class)});
    }
  }
  for (size_t i = 0; i < units.size();) {
    size_t j = i + 1;
    if (units[i].order != 0) {
      while (j < units.size() && units[j].order != 0) ++j;
      std::stable_sort(units.begin() + static_cast<ptrdiff_t>(i), units.begin() + static_cast<ptrdiff_t>(j),
                       [](const Unit& a, const Unit& b) { return a.order < b.order; });
    }
    i = j;
  }
  if (!form.compose) {
    for (const Unit& u : units) append_utf8(out, static_cast<uint32_t>(u.cp));
    return;
  }
  std::vector<int32_t> cps(units.size());
  std::transform(units.begin(), units.end(), cps.begin(), [](const Unit& u) { return u.cp; });
  const auto n = utf8proc_normalize_utf32(cps.data(), static_cast<utf8proc_ssize_t>(cps.size()),
                                          static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  MINFER_CHECK(n >= 0);
  for (utf8proc_ssize_t i = 0; i < n; ++i) append_utf8(out, static_cast<uint32_t>(cps[static_cast<size_t>(i)]));
}

}  // namespace

std::span<const CategoryRange> category_ranges() { return kCategoryRanges; }
std::string_view category_name(Category category) { return kCategoryNames[category]; }
std::span<const CodeRange> white_space_ranges() { return kWhiteSpace; }

const uint8_t* char_classes() {
  static const std::unique_ptr<uint8_t[]> table = build_classes();
  return table.get();
}

void append_utf8(std::string& out, uint32_t cp) {
  if (cp < 0x80) {
    out += static_cast<char>(cp);
    return;
  }
  if (cp < 0x800) {
    out += static_cast<char>(0xc0 | cp >> 6);
  } else {
    if (cp < 0x10000) {
      out += static_cast<char>(0xe0 | cp >> 12);
    } else {
      out += static_cast<char>(0xf0 | cp >> 18);
      out += static_cast<char>(0x80 | (cp >> 12 & 0x3f));
    }
    out += static_cast<char>(0x80 | (cp >> 6 & 0x3f));
  }
  out += static_cast<char>(0x80 | (cp & 0x3f));
}

bool surely_nfc(std::string_view text) {
  // U+0300 begins with byte 0xcc; all lead bytes below are of smaller code points.
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0xcc; });
}

std::string to_nfc(std::string_view text) { return to_normal_form(text, {}); }

std::string to_normal_form(std::string_view text, NormalForm form) {
  std::string out;
  out.reserve(text.size());
  size_t start = 0;
  for (size_t pos = 0; pos < text.size();) {
    const CodePoint c = read_code_point(text, pos);
    if (!c.valid) {
      append_normal(text.substr(start, pos - start), form, out);
      out += text[pos];
      start = pos + 1;
    }
    pos += c.bytes;
  }
  append_normal(text.substr(start), form, out);
  return out;
}

}  // namespace minfer
