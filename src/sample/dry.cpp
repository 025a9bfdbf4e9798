#include "sample/dry.h"

#include <algorithm>
#include <limits>

#include "base/fmath.h"
#include "sample/penalties.h"

namespace minfer {
namespace {

// z[k] = length of the longest common prefix of s and s[k..]. Source: Gusfield 1997, section 1.4; linear time.
void z_array(std::span<const int32_t> s, std::vector<int32_t>& z) {
  const auto n = static_cast<int32_t>(s.size());
  z.assign(s.size(), 0);
  int32_t left = 0, right = 0;  // s[left, right) is the match that reaches furthest
  for (int32_t k = 1; k < n; ++k) {
    int32_t length = k < right ? std::min(right - k, z[static_cast<size_t>(k - left)]) : 0;
    while (k + length < n && s[static_cast<size_t>(length)] == s[static_cast<size_t>(k + length)]) ++length;
    z[static_cast<size_t>(k)] = length;
    if (k + length > right) left = k, right = k + length;
  }
}

float lowered(float logit, double penalty) {
  const double x = static_cast<double>(logit) - penalty;
  return static_cast<float>(std::max(x, static_cast<double>(std::numeric_limits<float>::lowest())));
}

}  // namespace

BreakerTrie::BreakerTrie(std::span<const std::vector<int32_t>> sequences) {
  for (const auto& sequence : sequences) {
    uint32_t node = 0;
    for (int32_t id : sequence) {
      const auto fresh = static_cast<uint32_t>(nodes_.size());
      const auto [edge, added] = edges_.try_emplace(uint64_t{node} << 32 | static_cast<uint32_t>(id), fresh);
      if (added) nodes_.emplace_back();
      node = edge->second;
    }
    if (node != 0) nodes_[node].end = true;
    longest_ = std::max(longest_, sequence.size());
  }
}

uint32_t BreakerTrie::next(uint32_t node, int32_t id) const {
  const auto edge = edges_.find(uint64_t{node} << 32 | static_cast<uint32_t>(id));
  return edge == edges_.end() ? 0 : edge->second;
}

bool BreakerTrie::breaks_alone(int32_t id) const {
  const uint32_t node = next(0, id);
  return node != 0 && nodes_[node].end;
}

size_t BreakerTrie::since_break(std::span<const int32_t> window) const {
  size_t since = window.size();
  if (longest_ == 0) return since;
  // A sequence that begins `back` ids before the end leaves at least back - longest after it.
  for (size_t back = 1; back <= window.size() && back < since + longest_; ++back) {
    uint32_t node = 0;
    for (size_t i = window.size() - back; i < window.size(); ++i) {
      node = next(node, window[i]);
      if (node == 0) break;
      if (nodes_[node].end) since = std::min(since, window.size() - i - 1);
    }
  }
  return since;
}

bool Dry::active(const SamplingParams& p) { return p.dry_multiplier > 0.0f && p.dry_penalty_last_n != 0; }

std::span<const std::pair<int32_t, double>> Dry::penalties(std::span<const int32_t> history, const SamplingParams& p) {
  const auto window = last_ids(history, p.dry_penalty_last_n);
  penalties_.clear();
  lengths_.clear();
  const size_t most = breakers_.since_break(window);
  if (most < static_cast<size_t>(p.dry_allowed_length)) return penalties_;
  // Read backwards, the ids before an earlier place and those before the end share z ids; the id at that place would go
  // on with the repetition.
  backwards_.assign(window.rbegin(), window.rend());
  z_array(backwards_, z_);
  for (size_t k = 1; k < backwards_.size(); ++k) {
    const auto length = std::min(z_[k], static_cast<int32_t>(most));
    if (length >= p.dry_allowed_length) lengths_.emplace_back(backwards_[k - 1], length);
  }
  std::sort(lengths_.begin(), lengths_.end());
  for (size_t i = 0; i < lengths_.size(); ++i) {
    const auto [id, length] = lengths_[i];  // the longest of an id stands last
    if ((i + 1 < lengths_.size() && lengths_[i + 1].first == id) || breakers_.breaks_alone(id)) continue;
    penalties_.emplace_back(id, static_cast<double>(p.dry_multiplier) *
                                    pow_f64(static_cast<double>(p.dry_base), length - p.dry_allowed_length));
  }
  return penalties_;
}

void Dry::apply(std::span<float> row, std::span<const int32_t> history, const SamplingParams& p) {
  for (const auto& [id, penalty] : penalties(history, p)) {
    if (id < 0 || static_cast<size_t>(id) >= row.size()) continue;
    float& logit = row[static_cast<size_t>(id)];
    if (logit > -std::numeric_limits<float>::infinity()) logit = lowered(logit, penalty);  // forbidden stays so
  }
}

void Dry::apply(Candidates& c, std::span<const int32_t> history, const SamplingParams& p) {
  const auto all = penalties(history, p);
  for (Candidate& x : c.items()) {
    const auto at =
        std::lower_bound(all.begin(), all.end(), x.id, [](const auto& a, int32_t id) { return a.first < id; });
    if (at != all.end() && at->first == x.id) x.logit = lowered(x.logit, at->second);
  }
  if (c.sorted()) c.resort();
}

}  // namespace minfer
