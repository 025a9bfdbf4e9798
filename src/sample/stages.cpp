// The names of the stages; parse_samplers().
#include <string>

#include "base/error.h"
#include "minfer/sampling.h"

namespace minfer {
namespace {

struct Name {
  const char* name;
  SamplerStage stage;
};
// As llama.cpp spells them; after the first kSamplerStages stand other spellings in use.
constexpr Name kNames[] = {
    {"penalties", SamplerStage::kPenalties},
    {"dry", SamplerStage::kDry},
    {"top_n_sigma", SamplerStage::kTopNSigma},
    {"top_k", SamplerStage::kTopK},
    {"typ_p", SamplerStage::kTypicalP},
    {"top_p", SamplerStage::kTopP},
    {"min_p", SamplerStage::kMinP},
    {"xtc", SamplerStage::kXtc},
    {"temperature", SamplerStage::kTemperature},
    {"adaptive_p", SamplerStage::kAdaptiveP},
    {"typical_p", SamplerStage::kTypicalP},
    {"temp", SamplerStage::kTemperature},
};

Result<SamplerStage> stage_from_name(std::string_view name) {
  for (const Name& n : kNames) {
    if (name == n.name) return n.stage;
  }
  std::string known;
  for (int i = 0; i < kSamplerStages; ++i) known.append(i == 0 ? "" : ", ").append(kNames[i].name);
  std::string shown;
  for (char ch : name.substr(0, 40)) shown += ch >= ' ' && ch <= '~' ? ch : '?';
  return make_error(ErrorCode::kInvalidArgument, "[sample] samplers: found '{}', expected names out of {}", shown,
                    known);
}

}  // namespace

std::vector<SamplerStage> default_samplers() {
  std::vector<SamplerStage> stages;
  for (int i = 0; i < kSamplerStages; ++i) stages.push_back(static_cast<SamplerStage>(i));
  return stages;
}

const char* sampler_name(SamplerStage stage) { return kNames[static_cast<int>(stage)].name; }

Result<std::vector<SamplerStage>> parse_samplers(std::string_view names) {
  std::vector<SamplerStage> stages;
  while (!names.empty()) {
    const size_t end = names.find(';');
    stages.push_back(MINFER_TRY(stage_from_name(names.substr(0, end))));
    if (stages.size() > kSamplerStages) {
      return make_error(ErrorCode::kInvalidArgument, "[sample] samplers: more than {} names", kSamplerStages);
    }
    if (end == std::string_view::npos) break;
    names.remove_prefix(end + 1);
    if (names.empty()) MINFER_TRY(stage_from_name(""));  // "top_k;"
  }
  return stages;
}

}  // namespace minfer
