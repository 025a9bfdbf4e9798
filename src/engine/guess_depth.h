// GuessDepth: how deep to guess ahead for one run: by how often its guesses came true and what they cost.
// Threads: one owner.
#pragma once

#include <algorithm>
#include <cstdint>

namespace minfer {

class GuessDepth {
 public:
  struct Choice {
    int32_t depth = 0;    // 0: guessing is not worth it now
    double expected = 0;  // of these guesses, how many will come true
    double rate = 0;      // tokens per millisecond of the step with them
  };
  // The depth up to `most` at which the step gives most tokens per time. `tokens`: what it gives without these guesses;
  // `step_ms(k)`: what it takes with k of them.
  template <typename StepMs>
  Choice best(int32_t most, double tokens, const StepMs& step_ms) const {
    constexpr double kTiny = 1e-9;  // ms; a time that is not known yet is 0
    Choice out{0, 0, tokens / (step_ms(0) + kTiny)};
    double expected = 0, chance = 1;
    for (int32_t k = 1; k <= most; ++k) {
      chance *= hit_;
      expected += chance;
      const double rate = (tokens + expected) / (step_ms(k) + kTiny);
      if (rate > out.rate) out = {k, expected, rate};
    }
    return out;
  }

  // So many were guessed, so many of them came true before the first that did not.
  void learn(int32_t guessed, int32_t accepted) {
    for (int32_t k = 0; k < guessed && k <= accepted; ++k) hit_ += kRate * ((k < accepted ? 1.0 : 0.0) - hit_);
    if (accepted > 0) wait_ = kWaitFirst;
  }
  // For guesses that cost something: called at each step at which they did not pay. True now and then: one guess
  // should be tried all the same. Each time is twice as far away as the last, until one comes true.
  bool probe() {
    if (++idle_ < wait_) return false;
    idle_ = 0;
    wait_ = std::min(2 * wait_, kWaitMost);
    return true;
  }
  double hit() const { return hit_; }

 private:
  static constexpr double kRate = 0.15;                       // some six outcomes decide
  static constexpr int32_t kWaitFirst = 32, kWaitMost = 512;  // tokens
  double hit_ = 0.5;                                          // of one guess, when those before it were right
  int32_t idle_ = 0, wait_ = kWaitFirst;
};

}  // namespace minfer
