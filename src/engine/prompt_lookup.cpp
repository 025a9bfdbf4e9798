#include "engine/prompt_lookup.h"

namespace minfer {
namespace {

uint64_t hash_of(std::span<const int32_t> ids) {
  uint64_t h = 0x9E3779B97F4A7C15u;
  for (int32_t id : ids) {
    h = (h ^ static_cast<uint32_t>(id)) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  }
  return h;
}

}  // namespace

void PromptLookup::guess(std::span<const int32_t> ids, int32_t n, std::vector<int32_t>& guess) {
  guess.clear();
  const auto before = [&](size_t end, int32_t length) {  // the ids just before `end`
    return ids.subspan(end - static_cast<size_t>(length), static_cast<size_t>(length));
  };
  // Endings inside the text; the one at its end has nothing behind it yet.
  for (; read_ + 1 < ids.size(); ++read_) {
    for (size_t i = 0; i < kLengths.size(); ++i) {
      const size_t end = read_ + 1;
      if (end >= static_cast<size_t>(kLengths[i]))
        last_[i][hash_of(before(end, kLengths[i]))] = static_cast<int32_t>(end);
    }
  }
  for (size_t i = 0; i < kLengths.size() && n > 0; ++i) {
    if (ids.size() <= static_cast<size_t>(kLengths[i])) continue;
    const auto it = last_[i].find(hash_of(before(ids.size(), kLengths[i])));
    if (it == last_[i].end()) continue;
    // Beyond the end it goes on with its own guesses: a repetition repeats.
    for (auto at = static_cast<size_t>(it->second); n > 0; ++at, --n)
      guess.push_back(at < ids.size() ? ids[at] : guess[at - ids.size()]);
    return;
  }
}

}  // namespace minfer
