// CharSet: a set of code points, as the character classes of regular expressions need it.
// Layout:  ranges_ ascending, disjoint, not touching.
// Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace minfer {

inline constexpr uint32_t kMaxCodePoint = 0x10ffff;

struct CodeRange {
  uint32_t first, last;
};

class CharSet {
 public:
  CharSet() = default;
  explicit CharSet(uint32_t cp) : ranges_{{cp, cp}} {}
  CharSet(uint32_t first, uint32_t last) : ranges_{{first, last}} {}

  // \p{name}: a general category ("L", "Lu", "Nd", ...) or a script ("Han", ...); nullopt if there is none of the name.
  static std::optional<CharSet> property(std::string_view name);
  static CharSet space();         // \s: White_Space
  static CharSet word();          // \w as Oniguruma has it: L, M, N, Pc
  static CharSet unicode_word();  // \w as Unicode's technical standard 18 has it (and Rust's regex)
  static CharSet all() { return {0, kMaxCodePoint}; }

  bool contains(uint32_t cp) const;
  bool empty() const { return ranges_.empty(); }
  uint32_t size() const;
  const std::vector<CodeRange>& ranges() const { return ranges_; }

  void add(const CharSet& other);
  CharSet complement() const;
  CharSet intersection(const CharSet& other) const;
  // With the other cases of every member, by simple folding.
  CharSet any_case() const;

  bool operator==(const CharSet& other) const;

 private:
  explicit CharSet(std::vector<CodeRange> ranges) : ranges_(std::move(ranges)) {}
  std::vector<CodeRange> ranges_;
};

}  // namespace minfer
