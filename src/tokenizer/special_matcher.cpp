// See special_matcher.h.
#include "tokenizer/special_matcher.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace minfer {
namespace {

bool is_special(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown || type == TokenType::kUserDefined;
}

// An edge word: ((node << 8 | byte) + 1) << 31 | child, so a node has at most 24 bits: one node per byte of special
// text.
constexpr size_t kMaxNodes = size_t{1} << 24;
constexpr int kChildBits = 31;
constexpr uint64_t kChildMask = (uint64_t{1} << kChildBits) - 1;

uint64_t edge_key(uint32_t node, unsigned char byte) {
  return ((static_cast<uint64_t>(node) << 8 | byte) + 1) << kChildBits;
}

}  // namespace

uint32_t SpecialMatcher::child(uint32_t node, unsigned char byte) const {
  const uint64_t key = edge_key(node, byte);
  for (size_t i = hash_mix(key ^ seed_, seed_) & (edges_.size() - 1);; i = (i + 1) & (edges_.size() - 1)) {
    if (edges_[i] == 0) return 0;
    if ((edges_[i] & ~kChildMask) == key) return static_cast<uint32_t>(edges_[i] & kChildMask);
  }
}

uint32_t SpecialMatcher::add_child(uint32_t node, unsigned char byte) {
  const uint64_t key = edge_key(node, byte);
  for (size_t i = hash_mix(key ^ seed_, seed_) & (edges_.size() - 1);; i = (i + 1) & (edges_.size() - 1)) {
    if (edges_[i] == 0) {
      const auto fresh = static_cast<uint32_t>(terminals_.size());
      terminals_.emplace_back();
      edges_[i] = key | fresh;
      return fresh;
    }
    if ((edges_[i] & ~kChildMask) == key) return static_cast<uint32_t>(edges_[i] & kChildMask);
  }
}

Status SpecialMatcher::build(const Vocabulary& vocab) {
  // User-defined tokens of SentencePiece files may spell spaces as U+2581; their pieces have real spaces.
  size_t bytes = 0;
  for (size_t i = 0; i < vocab.size(); ++i) {
    if (is_special(vocab.types[i])) bytes += vocab.pieces[i].size();
  }
  if (bytes >= kMaxNodes) {
    return make_error(ErrorCode::kUnsupported,
                      "[tokenizer] special tokens: found {} bytes of text, expected fewer than {}", bytes, kMaxNodes);
  }
  seed_ = hash_seed();
  edges_.assign(std::bit_ceil(bytes * 2 + 2), 0);
  terminals_.assign(1, {});
  for (size_t i = 0; i < vocab.size(); ++i) {
    const std::string_view text = vocab.pieces[i];
    if (!is_special(vocab.types[i]) || text.empty()) continue;
    starts_[static_cast<unsigned char>(text[0])] = true;
    uint32_t node = 0;
    for (const char c : text) node = add_child(node, static_cast<unsigned char>(c));
    TokenId& slot = vocab.types[i] == TokenType::kUserDefined ? terminals_[node].anywhere : terminals_[node].control;
    if (slot == kNoToken) slot = static_cast<TokenId>(i);
  }
  return {};
}

std::optional<SpecialMatch> SpecialMatcher::next(std::string_view text, size_t from,
                                                 const std::vector<ByteRange>& markup) const {
  if (terminals_.size() <= 1) return std::nullopt;
  auto range = std::partition_point(markup.begin(), markup.end(), [&](const ByteRange& r) { return r.end <= from; });
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_[static_cast<unsigned char>(text[begin])]) continue;
    while (range != markup.end() && range->end <= begin) ++range;
    const size_t control_end = range != markup.end() && range->begin <= begin ? range->end : 0;
    std::optional<SpecialMatch> best;
    uint32_t node = 0;
    for (size_t end = begin; end < text.size();) {
      node = child(node, static_cast<unsigned char>(text[end]));
      if (node == 0) break;
      ++end;
      const Terminal& t = terminals_[node];
      if (t.control != kNoToken && end <= control_end)
        best = SpecialMatch{begin, end, t.control};
      else if (t.anywhere != kNoToken)
        best = SpecialMatch{begin, end, t.anywhere};
    }
    if (best) return best;
  }
  return std::nullopt;
}

}  // namespace minfer
