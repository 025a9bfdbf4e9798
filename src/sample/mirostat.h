// Mirostat: cuts the candidates so that the surprise of what is drawn, in bits, stays near tau. `mu`, the largest
// surprise let through, starts at 2 tau and is corrected after each draw.
// Source: Basu et al. 2021, "Mirostat: a neural text decoding algorithm that directly controls perplexity",
// algorithms 1 and 2.
#pragma once

#include "sample/candidates.h"

namespace minfer {

inline constexpr size_t kMirostatHead = 100;  // m of the paper: so many of the largest tell the exponent of Zipf's law

// Both leave the candidates sorted, at least one of them. Requires: c.size() > 0.
void keep_mirostat1(Candidates& c, double mu, size_t n_vocab);
void keep_mirostat2(Candidates& c, double mu);
// The next mu; p = probability of the drawn id among those that were left.
double mirostat_next(double mu, float p, float tau, float eta);

}  // namespace minfer
