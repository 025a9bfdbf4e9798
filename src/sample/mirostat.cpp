#include "sample/mirostat.h"

#include <algorithm>
#include <cmath>

#include "base/fmath.h"

namespace minfer {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

}  // namespace

void keep_mirostat1(Candidates& c, double mu, size_t n_vocab) {
  const auto head = c.head(kMirostatHead);
  // s: the slope of log p over log rank, by least squares over neighbours.
  double tb = 0, tt = 0;
  for (size_t i = 0; i + 1 < head.size(); ++i) {
    const double t = log_f64(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    tb += t * (static_cast<double>(head[i].logit) - static_cast<double>(head[i + 1].logit));
    tt += t * t;
  }
  if (head.size() < 2) return;
  const double s = tb / tt, epsilon = s - 1;
  // k = (epsilon 2^mu / (1 - n^-epsilon))^(1/s), by its logarithm. As epsilon goes to 0 the quotient goes to 1 / ln n.
  const double ln_n = log_f64(static_cast<double>(n_vocab));
  const double quotient = std::fabs(epsilon) < 1e-9 ? 1 / ln_n : epsilon / (1 - exp_f64(-epsilon * ln_n));
  const double log_k = (mu * kLn2 + log_f64(quotient)) / s;  // of equal logits s is 0: all are kept, or one
  size_t k = c.size();
  if (!(log_k >= log_f64(static_cast<double>(c.size())))) {
    k = log_k > 0 ? static_cast<size_t>(exp_f64(log_k)) : 1;
  }
  c.keep_head(std::clamp<size_t>(k, 1, c.size()));
}

void keep_mirostat2(Candidates& c, double mu) {
  c.softmax();
  size_t kept = 0;
  for (size_t n = 256;; n *= 16) {
    const auto head = c.head(n);
    while (kept < head.size() && -log_f64(static_cast<double>(head[kept].p)) <= mu * kLn2) ++kept;
    if (kept < head.size() || head.size() == c.size()) break;
  }
  c.keep_head(std::max<size_t>(kept, 1));
}

double mirostat_next(double mu, float p, float tau, float eta) {
  const double surprise = -log_f64(static_cast<double>(p)) / kLn2;
  return mu - static_cast<double>(eta) * (surprise - static_cast<double>(tau));
}

}  // namespace minfer
