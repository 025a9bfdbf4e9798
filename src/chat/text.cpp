// Concatenation and slices of strings that carry provenance.
#include "chat/text.h"

#include <algorithm>

namespace minfer::chat {

bool Text::is_markup(size_t i) const {
  const auto passed = std::upper_bound(flips_.begin(), flips_.end(), i) - flips_.begin();
  return first_markup_ != ((passed & 1) != 0);
}

void Text::append(std::string_view bytes, bool markup) {
  if (bytes.empty()) return;
  if (bytes_.empty()) {
    first_markup_ = markup;
    flips_.clear();
  } else if ((first_markup_ != ((flips_.size() & 1) != 0)) != markup) {
    flips_.push_back(bytes_.size());
  }
  bytes_.append(bytes);
}

void Text::append_slice(const Text& other, size_t from, size_t count) {
  if (count == 0) return;
  auto flip = std::upper_bound(other.flips_.begin(), other.flips_.end(), from);
  bool markup = other.first_markup_ != (((flip - other.flips_.begin()) & 1) != 0);
  const size_t end = from + count;
  while (from < end) {
    const size_t stop = flip == other.flips_.end() ? end : std::min(*flip, end);
    append(std::string_view(other.bytes_).substr(from, stop - from), markup);
    from = stop;
    if (flip != other.flips_.end()) ++flip;
    markup = !markup;
  }
}

Text Text::slice(size_t from, size_t count) const {
  Text out;
  out.append_slice(*this, from, count);
  return out;
}

}  // namespace minfer::chat
