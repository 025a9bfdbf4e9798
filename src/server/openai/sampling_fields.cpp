// One table of numbers, and the few fields that are no numbers.
#include "server/openai/sampling_fields.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace minfer::openai {
namespace {

using chat::Value;
using P = SamplingParams;

// Every number of SamplingParams but the seed; their ranges are check_sampling()'s.
struct IntField {
  const char* name;
  int32_t P::*at;
};
struct RealField {
  const char* name;
  float P::*at;
};
constexpr IntField kInts[] = {
    {"repeat_last_n", &P::repeat_last_n},
    {"dry_allowed_length", &P::dry_allowed_length},
    {"dry_penalty_last_n", &P::dry_penalty_last_n},
    {"top_k", &P::top_k},
    {"min_keep", &P::min_keep},
    {"mirostat", &P::mirostat},
};
constexpr RealField kReals[] = {
    {"repeat_penalty", &P::repeat_penalty},
    {"frequency_penalty", &P::frequency_penalty},
    {"presence_penalty", &P::presence_penalty},
    {"dry_multiplier", &P::dry_multiplier},
    {"dry_base", &P::dry_base},
    {"top_n_sigma", &P::top_n_sigma},
    {"typical_p", &P::typical_p},
    {"top_p", &P::top_p},
    {"min_p", &P::min_p},
    {"xtc_probability", &P::xtc_probability},
    {"xtc_threshold", &P::xtc_threshold},
    {"temperature", &P::temperature},
    {"dynatemp_range", &P::dynatemp_range},
    {"dynatemp_exponent", &P::dynatemp_exponent},
    {"adaptive_target", &P::adaptive_target},
    {"adaptive_decay", &P::adaptive_decay},
    {"mirostat_tau", &P::mirostat_tau},
    {"mirostat_eta", &P::mirostat_eta},
};

Status read_samplers(Fields& fields, P& params) {
  const Value* v = fields.take("samplers");
  if (v == nullptr) return {};
  std::string names;
  if (v->is_string()) {
    names = v->as_string();
  } else if (v->is_sequence()) {
    for (const Value& item : v->items()) {
      if (!item.is_string()) return bad_field(fields.path("samplers"), *v, "a list of names");
      names += (names.empty() ? "" : ";") + item.as_string();
    }
  } else {
    return bad_field(fields.path("samplers"), *v, "a list of names");
  }
  params.samplers = MINFER_TRY_CTX(parse_samplers(names), fields.path("samplers"));
  return {};
}

Result<int32_t> token_id(const std::string& name, std::string_view text) {
  int32_t id = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), id);
  if (r.ec != std::errc{} || r.ptr != text.data() + text.size() || id < 0) {
    return bad_field(name, Value::string(std::string(text)), "the id of a token");
  }
  return id;
}

}  // namespace

double shortest(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

Status read_sampling(Fields& fields, P& params) {
  for (const auto& f : kInts) MINFER_TRY(fields.integer(f.name, params.*f.at, INT32_MIN, INT32_MAX));
  for (const auto& f : kReals) MINFER_TRY(fields.real(f.name, params.*f.at));
  MINFER_TRY(read_samplers(fields, params));
  if (const Value* seed = fields.take("seed")) {
    const auto n = seed_number(*seed);
    if (!n) return bad_field(fields.path("seed"), *seed, "a whole number of 64 bits");
    params.seed = *n;
  }
  return {};
}

Status read_logit_bias(const Value& object, const std::string& name, P& params) {
  constexpr float kMost = 100;
  constexpr size_t kMaxBiased = 65536;  // each is looked at with every token drawn
  if (!object.is_dict()) return bad_field(name, object, "an object of token ids and numbers");
  const auto& entries = object.as_dict().entries();
  if (entries.size() > kMaxBiased) {
    return make_error(ErrorCode::kInvalidArgument, "{}: found {} tokens, expected at most {}", name, entries.size(),
                      kMaxBiased);
  }
  for (const auto& [key, value] : entries) {
    const int32_t id = MINFER_TRY(token_id(name, key.as_string()));
    const bool forbids = value.is(Value::Kind::kBool) && !value.as_bool();  // as llama.cpp's server has it
    const auto bias = forbids ? std::optional<double>(-INFINITY) : number(value);
    if (!bias || (!forbids && std::fabs(*bias) > kMost)) {
      return bad_field(fmt::format("{}[{}]", name, id), value, "a number from -100 to 100, or false, which forbids it");
    }
    params.logit_bias.emplace_back(id, static_cast<float>(*bias));
  }
  return {};
}

nlohmann::ordered_json stamped_sampling(const P& params) {
  nlohmann::ordered_json j;
  j["seed"] = params.seed;
  for (const auto& f : kReals) j[f.name] = shortest(params.*f.at);
  for (const auto& f : kInts) j[f.name] = params.*f.at;
  auto order = nlohmann::ordered_json::array();
  for (const SamplerStage stage : params.samplers) order.push_back(sampler_name(stage));
  j["samplers"] = std::move(order);
  if (!params.logit_bias.empty()) {
    auto list = nlohmann::ordered_json::array();  // in their order, infinity as a word
    for (const auto& [id, bias] : params.logit_bias) {
      nlohmann::ordered_json value = "-inf";
      if (std::isfinite(bias)) value = shortest(bias);
      list.push_back(nlohmann::ordered_json::array({id, std::move(value)}));
    }
    j["logit_bias"] = std::move(list);
  }
  if (params.dry_multiplier != 0) j["dry_breakers"] = params.dry_breakers;
  return j;
}

Status read_stamped_sampling(Fields& fields, P& params) {
  MINFER_TRY(read_sampling(fields, params));
  if (const Value* list = fields.take("logit_bias")) {
    const auto bad = [&] { return bad_field(fields.path("logit_bias"), *list, "a list of [id, number]"); };
    if (!list->is_sequence()) return bad();
    for (const Value& pair : list->items()) {
      if (!pair.is_sequence() || pair.items().size() != 2) return bad();
      const auto id = whole_number(pair.items()[0]);
      const Value& bias = pair.items()[1];
      const bool forbids = bias.is_string() && bias.as_string() == "-inf";
      const auto n = forbids ? std::optional<double>(-INFINITY) : number(bias);
      if (!id || *id < 0 || *id > INT32_MAX || !n) return bad();
      params.logit_bias.emplace_back(static_cast<int32_t>(*id), static_cast<float>(*n));
    }
  }
  if (const Value* list = fields.take("dry_breakers")) {
    const auto bad = [&] { return bad_field(fields.path("dry_breakers"), *list, "a list of lists of ids"); };
    params.dry_breakers.clear();
    if (!list->is_sequence()) return bad();
    for (const Value& ids : list->items()) {
      if (!ids.is_sequence()) return bad();
      auto& out = params.dry_breakers.emplace_back();
      for (const Value& item : ids.items()) {
        const auto id = whole_number(item);
        if (!id || *id < 0 || *id > INT32_MAX) return bad();
        out.push_back(static_cast<int32_t>(*id));
      }
    }
  }
  return {};
}

}  // namespace minfer::openai
