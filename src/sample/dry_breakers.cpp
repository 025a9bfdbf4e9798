#include "sample/dry_breakers.h"

#include <algorithm>
#include <optional>

namespace minfer {

Result<std::vector<std::vector<int32_t>>> dry_breakers(std::span<const std::string> strings,
                                                       const BreakerVocab& vocab) {
  std::vector<std::vector<int32_t>> out;
  for (size_t i = 0; i < strings.size(); ++i) {
    const std::string_view s = strings[i];
    if (s.empty() || s.size() > kBreakerBytes) {
      return make_error(ErrorCode::kInvalidArgument, "[sample] DRY sequence breaker {} has {} bytes, expected 1 to {}",
                        i + 1, s.size(), kBreakerBytes);
    }
    std::vector<std::optional<std::vector<int32_t>>> rests(s.size());  // ids of s[n..], where asked for
    for (int32_t id = 0; id < vocab.n_vocab; ++id) {
      const std::string_view piece = vocab.piece(id);
      if (piece.find(s) != std::string_view::npos) {
        out.push_back({id});
        continue;
      }
      for (size_t n = 1; n < s.size() && n <= piece.size(); ++n) {
        if (!piece.ends_with(s.substr(0, n))) continue;
        if (!rests[n]) rests[n] = MINFER_TRY(vocab.encode(s.substr(n)));
        std::vector<int32_t> sequence = {id};
        sequence.insert(sequence.end(), rests[n]->begin(), rests[n]->end());
        out.push_back(std::move(sequence));
      }
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace minfer
