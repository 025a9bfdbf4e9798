// A string that remembers where each byte came from: the template's own words (markup) or the data it was given.
// Only markup may be read as special tokens, so that a message that spells "<|im_end|>" stays ordinary text.
// Layout:  UTF-8 bytes, the provenance of the first byte, and the offsets where the provenance flips; a string of one
//          origin (nearly all) has no flips.
// Threads: a plain value.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace minfer::chat {

class Text {
 public:
  Text() = default;
  Text(std::string bytes, bool markup) : bytes_(std::move(bytes)), first_markup_(markup) {}

  const std::string& bytes() const { return bytes_; }
  std::string_view view() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  // Provenance of byte i. Requires: i < size(). O(log flips).
  bool is_markup(size_t i) const;
  bool all_markup() const { return bytes_.empty() || (first_markup_ && flips_.empty()); }
  bool all_data() const { return bytes_.empty() || (!first_markup_ && flips_.empty()); }

  void append(std::string_view bytes, bool markup);
  void append(const Text& other) { append_slice(other, 0, other.size()); }
  // Appends bytes [from, from + count) of other. Requires: the range lies inside other; other is not *this.
  void append_slice(const Text& other, size_t from, size_t count);
  Text slice(size_t from, size_t count) const;

  // Calls f(string_view piece, bool markup) for each maximal run of one origin, in order.
  template <typename F>
  void for_each_run(F&& f) const {
    bool markup = first_markup_;
    size_t begin = 0;
    for (size_t flip : flips_) {
      f(std::string_view(bytes_).substr(begin, flip - begin), markup);
      begin = flip;
      markup = !markup;
    }
    if (begin < bytes_.size()) f(std::string_view(bytes_).substr(begin), markup);
  }

  // Drops the finer picture: every byte becomes data.
  void mark_all_data() {
    first_markup_ = false;
    flips_.clear();
  }

 private:
  std::string bytes_;
  bool first_markup_ = false;
  std::vector<size_t> flips_;  // ascending, each in (0, size())
};

}  // namespace minfer::chat
