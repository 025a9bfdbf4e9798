#include "sample/dry_breakers.h"

#include <algorithm>
#include <optional>

namespace minfer {

Result<std::vector<std::vector<int32_t>>> dry_breakers(std::span<const std::string> strings,
                                                       const BreakerVocab& vocab) {
  std::vector<std::vector<int32_t>> out;
  std::vector<bool> alone(static_cast<size_t>(std::max(vocab.n_vocab, 0)));  // ids that are in `out` by themselves
  size_t total = 0;
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
        if (!alone[static_cast<size_t>(id)]) out.push_back({id}), ++total;
        alone[static_cast<size_t>(id)] = true;
        continue;
      }
      for (size_t n = 1; n < s.size() && n <= piece.size(); ++n) {
        if (!piece.ends_with(s.substr(0, n))) continue;
        if (!rests[n]) rests[n] = MINFER_TRY(vocab.encode(s.substr(n)));
        std::vector<int32_t> sequence = {id};
        sequence.insert(sequence.end(), rests[n]->begin(), rests[n]->end());
        total += sequence.size();
        out.push_back(std::move(sequence));
        if (total > kBreakerIdsTotal) {
          return make_error(ErrorCode::kResourceExhausted, "[sample] DRY sequence breakers of more than {} ids in all",
                            kBreakerIdsTotal);
        }
      }
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace minfer
