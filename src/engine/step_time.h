// StepTime: how long a step takes, learned from the steps that ran: the time of decoding so many tokens together, and
// what each prompt token adds by its depth. Pure arithmetic; times come from outside.
// Threads: one owner.
#pragma once

#include <array>
#include <cstdint>

namespace minfer {

struct StepShape {
  int32_t decode_rows = 0;     // tokens of streams, guesses included
  int32_t prefill_tokens = 0;  // tokens of prompts
  int64_t prefill_depth = 0;   // sum of their positions
};

class StepTime {
 public:
  void observe(const StepShape& shape, double ms);

  double decode_ms(int32_t rows) const;                    // 0: nothing known yet
  double prefill_ms(int32_t tokens, int64_t depth) const;  // beside a decode; 0: nothing known yet
  // How many prompt tokens from `position` on fit into `ms` beside `decode_rows`. At least `least`, at most `most`.
  int32_t prefill_budget(int32_t decode_rows, int32_t position, double ms, int32_t least, int32_t most) const;

 private:
  static constexpr int32_t kRows = 256;     // more rows than that are counted as so many
  std::array<double, kRows + 1> decode_{};  // moving averages, 0 = none yet
  // Least squares with forgetting over (tokens, depth / 1024) of what a prompt's part adds: normal equations.
  double s11_ = 0, s12_ = 0, s22_ = 0, b1_ = 0, b2_ = 0;
  double per_token_ = 0, per_depth_ = 0;  // ms per token, ms per 1024 positions of depth of a token
};

}  // namespace minfer
