// Flags of the samplers, named as llama.cpp names them.
#include <CLI/CLI.hpp>
#include <cmath>
#include <random>

#include "base/error.h"
#include "common.h"
#include "engine/model_breakers.h"
#include "gguf/reader.h"
#include "options.h"

namespace minfer::cli {
namespace {

constexpr Range kCount = {0, 1'000'000'000}, kLastN = {-1, 1'000'000'000}, kMirostat = {0, 2};

// "\n", "\t", "\r", "\\", "\"" and "\'" as a shell passes them on.
Result<std::string> unescape(const std::string& text) {
  constexpr std::string_view kLetters = "ntr\\\"'", kMeanings = "\n\t\r\\\"'";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const size_t at = i + 1 < text.size() ? kLetters.find(text[i + 1]) : std::string_view::npos;
    if (at == std::string_view::npos) {
      return make_error(ErrorCode::kInvalidArgument,
                        "--dry-sequence-breaker: found {}, expected \\n, \\t, \\r, \\\", \\' or \\\\ after a backslash",
                        gguf::printable(text, 80));
    }
    out += kMeanings[at];
    ++i;
  }
  return out;
}

void add_penalties(CLI::App& app, SamplingFlags& f) {
  SamplingParams& p = f.params;
  const char* group = "Sampling";
  add_real(app, "--repeat-penalty", p.repeat_penalty, "penalty on recent tokens, 0.01 to 100; 1 = off")->group(group);
  add_integer(app, "--repeat-last-n", p.repeat_last_n, kLastN, "how many recent tokens the penalties see; -1 = all",
              true)
      ->group(group);
  add_real(app, "--frequency-penalty", p.frequency_penalty, "penalty per occurrence; 0 = off")->group(group);
  add_real(app, "--presence-penalty", p.presence_penalty, "penalty for having occurred; 0 = off")->group(group);
  add_real(app, "--dry-multiplier", p.dry_multiplier, "DRY: penalty on going on with a repetition; 0 = off")
      ->group(group);
  add_real(app, "--dry-base", p.dry_base, "DRY: how fast it grows with the repetition's length")->group(group);
  add_integer(app, "--dry-allowed-length", p.dry_allowed_length, kCount, "DRY: shorter repetitions are free", true)
      ->group(group);
  add_integer(app, "--dry-penalty-last-n", p.dry_penalty_last_n, kLastN,
              "DRY: how many recent tokens are looked at; -1 = all", true)
      ->group(group);
  add_texts(
      app, "--dry-sequence-breaker", f.dry_breakers,
      "DRY: a text that ends a repetition, in the place of \\n, :, \" and *; may be repeated; none = no such text")
      ->group(group);
}

void add_filters(CLI::App& app, SamplingFlags& f) {
  SamplingParams& p = f.params;
  const char* group = "Sampling";
  add_integer(app, "--top-k", p.top_k, kCount, "keep the k likeliest tokens; 0 = all", true)->group(group);
  add_real(app, "--top-p", p.top_p, "keep the likeliest tokens that hold this much probability; 1 = all")->group(group);
  add_real(app, "--min-p", p.min_p, "drop tokens below this fraction of the likeliest; 0 = none")->group(group);
  add_real(app, "--top-n-sigma,--top-nsigma", p.top_n_sigma,
           "drop tokens this many standard deviations below the likeliest; 0 or less = off")
      ->group(group);
  add_real(app, "--typical-p,--typical", p.typical_p, "locally typical sampling; 1 = off")->group(group);
  add_real(app, "--xtc-probability", p.xtc_probability, "XTC: how often the top choices are dropped; 0 = never")
      ->group(group);
  add_real(app, "--xtc-threshold", p.xtc_threshold, "XTC: a top choice is at least so likely; above 0.5 = off")
      ->group(group);
  add_integer(app, "--min-keep", p.min_keep, kCount, "typical-p, top-p, min-p and XTC leave at least so many", true)
      ->group(group);
}

// For a token that the model does not have.
Status check_bias(const SamplingParams& params, int32_t n_vocab) {
  for (const auto& [id, bias] : params.logit_bias) {
    if (id >= n_vocab) {
      return make_error(ErrorCode::kInvalidArgument, "--logit-bias: found token {}, expected 0 to {}", id, n_vocab - 1);
    }
  }
  return {};
}

}  // namespace

void SamplingFlags::add_to(CLI::App& app) {
  const char* group = "Sampling";
  add_real(app, "--temp,--temperature", params.temperature, "temperature; 0 = greedy")->group(group);
  add_real(app, "--dynatemp-range", params.dynatemp_range,
           "temperature up or down by as much, as the entropy is high or low; 0 = off")
      ->group(group);
  add_real(app, "--dynatemp-exp", params.dynatemp_exponent, "exponent of the entropy there")->group(group);
  add_filters(app, *this);
  add_penalties(app, *this);
  add_integer(app, "--mirostat", params.mirostat, kMirostat,
              "Mirostat 1 or 2 in the place of top-k, top-p, min-p and the like; 0 = off", true)
      ->group(group);
  add_real(app, "--mirostat-ent", params.mirostat_tau, "Mirostat: surprise to hold, in bits (tau)")->group(group);
  add_real(app, "--mirostat-lr", params.mirostat_eta, "Mirostat: how fast it corrects (eta)")->group(group);
  add_real(app, "--adaptive-target", params.adaptive_target,
           "adaptive-p: prefer tokens near this probability; negative = off")
      ->group(group);
  add_real(app, "--adaptive-decay", params.adaptive_decay, "adaptive-p: memory of its average, 0 to 0.99")
      ->group(group);
  add_text(app, "--samplers", samplers,
           "the stages that happen, in order, separated by ; (default: penalties;dry;top_n_sigma;top_k;typ_p;top_p;"
           "min_p;xtc;temperature;adaptive_p)")
      ->group(group);
  add_texts(app, "--logit-bias", logit_bias, "ID=VALUE added to a token's logit (-inf forbids it); may be repeated")
      ->group(group);
  add_seed(app, "--seed", seed, "seed of the random numbers (default: a fresh one)")->group(group);
}

Result<SamplingParams> SamplingFlags::resolve() const {
  SamplingParams p = params;
  for (const auto& item : logit_bias) {
    constexpr Range kIds = {0, INT32_MAX};
    const size_t eq = item.find('=');
    const std::string value = eq == std::string::npos ? "" : item.substr(eq + 1);
    const auto id = parse_integer(item.substr(0, eq), kIds);
    const auto bias = value == "-inf" ? Result<float>(-INFINITY) : parse_real(value);
    if (!id.ok() || !bias.ok()) {
      return make_error(ErrorCode::kInvalidArgument, "--logit-bias: found '{}', expected ID=VALUE", item);
    }
    p.logit_bias.emplace_back(static_cast<int32_t>(*id), *bias);
  }
  if (!samplers.empty()) p.samplers = MINFER_TRY(parse_samplers(samplers));
  if (const auto texts = breaker_texts(); !texts.ok()) return texts.error();
  p.seed = seed ? *seed : (uint64_t{std::random_device{}()} << 32 | std::random_device{}());
  MINFER_TRY(check_sampling(p));
  return p;
}

Result<std::vector<std::string>> SamplingFlags::breaker_texts() const {
  std::vector<std::string> texts;
  if (dry_breakers.empty()) texts.assign(std::begin(kDryBreakers), std::end(kDryBreakers));
  for (const auto& text : dry_breakers) {
    if (text == "none") {
      texts.clear();
      continue;
    }
    texts.push_back(MINFER_TRY(unescape(text)));
    if (texts.back().size() > kBreakerBytes) {
      return make_error(ErrorCode::kInvalidArgument, "--dry-sequence-breaker: found {} bytes, expected 1 to {}",
                        texts.back().size(), kBreakerBytes);
    }
  }
  return texts;
}

Status SamplingFlags::fit(SamplingParams& p, const Tokenizer* tokenizer, int32_t n_vocab) const {
  MINFER_TRY(check_bias(p, n_vocab));
  if (p.dry_multiplier == 0.0f || tokenizer == nullptr) return {};
  p.dry_breakers = MINFER_TRY(minfer::dry_breakers(MINFER_TRY(breaker_texts()), *tokenizer));
  return check_sampling(p);
}

}  // namespace minfer::cli
