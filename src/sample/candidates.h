// Candidates: the ids that may still be drawn. They stand in the order of their ids until a stage sorts them by
// (logit descending, id ascending); both orders, and so every sum over them, are the same on every machine.
// Errors:  none. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sample/token_mask.h"

namespace minfer {

struct Candidate {
  int32_t id;
  float logit;  // never -infinity or NaN
  float p;      // filled by softmax()
};

class Candidates {
 public:
  Candidates() = default;
  explicit Candidates(std::vector<Candidate> items);  // Requires: ids ascending

  // The finite logits of a row [n_vocab] that the mask allows, or of those the k largest, sorted; k = 0: all.
  // Requires: none of them is NaN; the mask is empty or has a bit for each.
  void assign(std::span<const float> row, size_t k, TokenMask mask = {});
  void assign_one(int32_t id, float logit);  // p = 1

  size_t size() const { return items_.size(); }
  bool sorted() const { return sorted_; }
  std::span<Candidate> items() { return items_; }
  std::span<const Candidate> items() const { return items_; }
  float largest() const;  // logit. Requires: size() > 0

  // p = exp(logit - largest) / their sum; the sum is f64, in the order of the candidates. Returns the sum of p.
  double softmax();

  // The n largest in order, or all: for stages that seldom need more than a few. Valid until the next call of a
  // method that is not const.
  std::span<const Candidate> head(size_t n);
  void sort();
  void resort();             // after logits changed
  void keep_head(size_t n);  // only the n largest stay, sorted

  // Those for which drop(candidate) is true go; the order stays.
  template <typename Drop>
  void drop_if(Drop drop) {
    std::erase_if(items_, drop);
  }

 private:
  std::vector<Candidate> items_, head_;
  bool sorted_ = true;
};

// By logit, the largest first, ties to the lower id.
inline bool before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

}  // namespace minfer
