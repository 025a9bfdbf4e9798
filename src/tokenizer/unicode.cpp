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

struct ClassRange {
  uint32_t first, last;
  uint8_t kind;
};

constexpr ClassRange kRanges[] = {
#include "tokenizer/unicode_classes.inc"
};

constexpr size_t kCodePoints = 0x110000;

std::unique_ptr<uint8_t[]> build_classes() {
  auto table = std::make_unique<uint8_t[]>(kCodePoints);
  for (const ClassRange& r : kRanges) std::memset(table.get() + r.first, r.kind, r.last - r.first + 1);
  return table;
}

// Canonical decomposition, ordering and composition of one well-formed run. utf8proc's own ordering step swaps
// neighbours (quadratic in the length of a run of marks), so the marks are sorted here.
void append_nfc(std::string_view run, std::string& out) {
  struct Unit {
    int32_t cp;
    int16_t order;  // canonical combining class
  };
  std::vector<Unit> units;
  units.reserve(run.size());
  for (size_t pos = 0; pos < run.size();) {
    const CodePoint c = read_code_point(run, pos);
    pos += c.bytes;
    if (c.value < 0xc0) {
      units.push_back({static_cast<int32_t>(c.value), 0});
      continue;
    }
    int32_t parts[8];  // the longest canonical decomposition has 4 code points
    int boundary = 0;
    const auto n =
        utf8proc_decompose_char(static_cast<int32_t>(c.value), parts, 8,
                                static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE), &boundary);
    MINFER_CHECK(n >= 0 && n <= 8);
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
  std::vector<int32_t> cps(units.size());
  std::transform(units.begin(), units.end(), cps.begin(), [](const Unit& u) { return u.cp; });
  const auto n = utf8proc_normalize_utf32(cps.data(), static_cast<utf8proc_ssize_t>(cps.size()),
                                          static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  MINFER_CHECK(n >= 0);
  for (utf8proc_ssize_t i = 0; i < n; ++i) append_utf8(out, static_cast<uint32_t>(cps[static_cast<size_t>(i)]));
}

}  // namespace

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

std::string to_nfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t start = 0;
  for (size_t pos = 0; pos < text.size();) {
    const CodePoint c = read_code_point(text, pos);
    if (!c.valid) {
      append_nfc(text.substr(start, pos - start), out);
      out += text[pos];
      start = pos + 1;
    }
    pos += c.bytes;
  }
  append_nfc(text.substr(start), out);
  return out;
}

}  // namespace minfer
