// See charsmap.h.
#include "tokenizer/charsmap.h"

#include "base/error.h"

namespace minfer {
namespace {

// A unit of the trie: bits 0-7 the label; 8 "a value hangs below"; 9 "the offset is in steps of 256"; 10-30 the offset.
// A value is a unit with bit 31 set.
bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & 0x7fffffffu; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000ffu; }
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & 0x200u) >> 6); }

uint32_t read_u32(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) | static_cast<uint32_t>(p[1]) << 8 | static_cast<uint32_t>(p[2]) << 16 |
         static_cast<uint32_t>(p[3]) << 24;
}

}  // namespace

Result<Charsmap> Charsmap::make(std::span<const uint8_t> blob) {
  Charsmap map;
  const uint64_t bytes = blob.size() < 4 ? 0 : read_u32(blob.data());
  if (blob.size() < 8 || bytes % 4 != 0 || bytes == 0 || bytes > blob.size() - 4) {
    return make_error(ErrorCode::kCorrupt,
                      "[tokenizer] precompiled_charsmap: a trie of {} bytes in {}, expected a multiple of 4 within it",
                      bytes, blob.size());
  }
  map.units_.reserve(bytes / 4);
  for (size_t i = 4; i < 4 + bytes; i += 4) map.units_.push_back(read_u32(blob.data() + i));
  map.replacements_.assign(blob.begin() + static_cast<ptrdiff_t>(4 + bytes), blob.end());
  map.replacements_ += '\0';
  return map;
}

Charsmap::Match Charsmap::find(std::string_view text, bool longest) const {
  Match best;
  size_t node = offset_of(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const uint32_t label = static_cast<unsigned char>(text[i]);
    if (label == 0) break;  // ends a key
    node ^= label;
    if (node >= units_.size() || label_of(units_[node]) != label) break;
    const uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if (!has_value(unit)) continue;
    if (node >= units_.size()) break;
    const size_t at = value_of(units_[node]);
    if (at >= replacements_.size()) break;
    best = {i + 1, std::string_view(replacements_.c_str() + at)};
    if (!longest) break;
  }
  return best;
}

}  // namespace minfer
