// Writing, reading and comparing stamps.
#include "server/stamp.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/numerics_version.h"
#include "base/sha256.h"
#include "server/openai/fields.h"
#include "server/openai/sampling_fields.h"

namespace minfer {
namespace {

using chat::Value;
using openai::bad_field;
using openai::Fields;
using openai::whole_number;

// Little-endian bytes, on any machine.
void add_int(Sha256& hash, uint64_t v, int n_bytes) {
  std::array<std::byte, 8> bytes{};
  for (int i = 0; i < n_bytes; ++i) bytes[static_cast<size_t>(i)] = static_cast<std::byte>(v >> (8 * i) & 0xff);
  hash.update(std::span(bytes.data(), static_cast<size_t>(n_bytes)));
}

void add_ids(Sha256& hash, std::span<const int32_t> ids) {
  for (const int32_t id : ids) add_int(hash, static_cast<uint32_t>(id), 4);
}

Result<std::vector<int32_t>> ids_of(const Value* list, const std::string& name) {
  if (list == nullptr) return make_error(ErrorCode::kCorrupt, "{}: is missing", name);
  if (!list->is_sequence()) return bad_field(name, *list, "a list of ids");
  std::vector<int32_t> ids;
  ids.reserve(list->items().size());
  for (const Value& item : list->items()) {
    const auto id = whole_number(item);
    if (!id || *id < 0 || *id > INT32_MAX) return bad_field(name, item, "the id of a token");
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

Result<std::string> required(Fields& f, const char* name) {
  std::string text;
  if (!MINFER_TRY(f.text(name, text))) return make_error(ErrorCode::kCorrupt, "{}: is missing", f.path(name));
  return text;
}

Result<std::vector<FinishReason>> finish_of(const Value* list, const std::string& name) {
  std::vector<FinishReason> out;
  if (list == nullptr) return make_error(ErrorCode::kCorrupt, "{}: is missing", name);
  const auto bad = [&] { return bad_field(name, *list, "a list of \"stop\", \"length\" and \"context\""); };
  if (!list->is_sequence()) return bad();
  for (const Value& item : list->items()) {
    bool known = false;
    for (const FinishReason r : {FinishReason::kStop, FinishReason::kLength, FinishReason::kContext}) {
      if (!item.is_string() || item.as_string() != finish_reason_name(r)) continue;
      out.push_back(r);
      known = true;
    }
    if (!known) return bad();
  }
  return out;
}

Status read_parameters(const Value* object, Request& r) {
  if (object == nullptr) return make_error(ErrorCode::kCorrupt, "stamp.parameters: is missing");
  Fields f = MINFER_TRY(Fields::of(*object, "stamp.parameters."));
  MINFER_TRY(f.integer("n", r.n, 1, INT32_MAX));
  if (MINFER_TRY(f.integer("best_of", r.best_of, 1, INT32_MAX)) && r.best_of < r.n) {
    return make_error(ErrorCode::kCorrupt, "stamp.parameters.best_of: found {}, expected at least n ({})", r.best_of,
                      r.n);
  }
  MINFER_TRY(f.integer("max_tokens", r.max_tokens, -1, INT32_MAX));
  MINFER_TRY(f.integer("min_tokens", r.min_tokens, 0, INT32_MAX));
  if (const Value* stops = f.take("stop")) {
    if (!stops->is_sequence()) return bad_field(f.path("stop"), *stops, "a list of strings");
    for (const Value& s : stops->items()) {
      if (!s.is_string()) return bad_field(f.path("stop"), s, "a string");
      r.stop.push_back(s.as_string());
    }
  }
  if (const Value* ids = f.take("stop_ids")) r.stop_ids = MINFER_TRY(ids_of(ids, f.path("stop_ids")));
  MINFER_TRY(f.boolean("ignore_eos", r.ignore_eos));
  MINFER_TRY(f.boolean("show_control", r.show_control));
  MINFER_TRY(openai::read_stamped_sampling(f, r.sampling));
  return f.finish();
}

}  // namespace

std::string prompt_sha256(std::span<const int32_t> ids) {
  Sha256 hash;
  add_ids(hash, ids);
  return to_hex(hash.finish());
}

std::string output_sha256(const std::vector<Choice>& choices) {
  Sha256 hash;
  for (const Choice& c : choices) {
    add_int(hash, c.ids.size(), 4);
    add_ids(hash, c.ids);
    add_int(hash, c.text.size(), 8);
    hash.update(std::as_bytes(std::span(c.text.data(), c.text.size())));
  }
  return to_hex(hash.finish());
}

nlohmann::ordered_json make_stamp(const StampedModel& model, const Request& request,
                                  const std::vector<Choice>& choices) {
  nlohmann::ordered_json parameters;
  parameters["n"] = request.n;
  const bool ranked = request.best_of > request.n;
  if (ranked) parameters["best_of"] = request.best_of;
  parameters["max_tokens"] = request.max_tokens;
  if (ranked && request.max_tokens < 0 && model.n_ctx > 0) {
    parameters["max_tokens"] = int64_t{model.n_ctx} - static_cast<int64_t>(request.prompt.size()) + 1;
  }
  parameters["min_tokens"] = request.min_tokens;
  if (!request.stop.empty()) parameters["stop"] = request.stop;
  if (!request.stop_ids.empty()) parameters["stop_ids"] = request.stop_ids;
  parameters["ignore_eos"] = request.ignore_eos;
  parameters["show_control"] = request.show_control;
  parameters.update(openai::stamped_sampling(request.sampling));

  nlohmann::ordered_json j;
  j["model_sha256"] = model.sha256;
  j["numerics"] = kNumericsVersion;
  j["cache_type_k"] = model.cache_type_k;
  j["cache_type_v"] = model.cache_type_v;
  j["parameters"] = std::move(parameters);
  j["prompt_sha256"] = prompt_sha256(request.prompt);
  j["output_sha256"] = output_sha256(choices);
  auto finish = nlohmann::ordered_json::array(), ids = nlohmann::ordered_json::array();
  for (const Choice& c : choices) {
    finish.push_back(finish_reason_name(c.finish));
    ids.push_back(c.ids);
  }
  j["finish"] = std::move(finish);
  j["prompt_ids"] = request.prompt;
  j["token_ids"] = std::move(ids);
  return j;
}

Result<Stamp> read_stamp(const Value& object) {
  Fields f = MINFER_TRY(Fields::of(object, "stamp."));
  Stamp s;
  s.model.sha256 = MINFER_TRY(required(f, "model_sha256"));
  s.model.cache_type_k = MINFER_TRY(required(f, "cache_type_k"));
  s.model.cache_type_v = MINFER_TRY(required(f, "cache_type_v"));
  if (!MINFER_TRY(f.integer("numerics", s.numerics, 0, INT32_MAX))) {
    return make_error(ErrorCode::kCorrupt, "stamp.numerics: is missing");
  }
  if (s.numerics != kNumericsVersion) {
    return make_error(ErrorCode::kUnsupported, "stamp.numerics: found {}, expected {}: these numerics give other bits",
                      s.numerics, kNumericsVersion);
  }
  MINFER_TRY(read_parameters(f.take("parameters"), s.request));
  s.request.prompt = MINFER_TRY(ids_of(f.take("prompt_ids"), "stamp.prompt_ids"));
  s.finish = MINFER_TRY(finish_of(f.take("finish"), "stamp.finish"));
  const Value* answers = f.take("token_ids");
  if (answers == nullptr) return make_error(ErrorCode::kCorrupt, "stamp.token_ids: is missing");
  if (!answers->is_sequence()) return bad_field("stamp.token_ids", *answers, "a list of lists of ids");
  for (const Value& ids : answers->items()) s.token_ids.push_back(MINFER_TRY(ids_of(&ids, "stamp.token_ids")));
  if (s.token_ids.size() != static_cast<size_t>(s.request.n) || s.finish.size() != s.token_ids.size()) {
    return make_error(ErrorCode::kCorrupt, "stamp: found {} answers and {} ends of answers, expected n ({})",
                      s.token_ids.size(), s.finish.size(), s.request.n);
  }
  if (MINFER_TRY(required(f, "prompt_sha256")) != prompt_sha256(s.request.prompt)) {
    return make_error(ErrorCode::kCorrupt, "stamp.prompt_sha256: it is not that of prompt_ids: the record was changed");
  }
  s.output_sha256 = MINFER_TRY(required(f, "output_sha256"));
  MINFER_TRY(f.finish());
  return s;
}

Request replay_request(const Stamp& stamp) {
  Request r = stamp.request;
  size_t longest = 0;
  bool cut = false;
  for (size_t i = 0; i < stamp.finish.size(); ++i) {
    if (stamp.finish[i] != FinishReason::kContext) continue;
    cut = true;
    longest = std::max(longest, stamp.token_ids[i].size());
  }
  if (cut) r.max_tokens = static_cast<int32_t>(std::min<size_t>(longest, INT32_MAX));
  return r;
}

std::optional<Difference> first_difference(const Stamp& stamp, const std::vector<Choice>& again) {
  for (size_t c = 0; c < stamp.token_ids.size(); ++c) {
    const auto& a = stamp.token_ids[c];
    const auto& b = again[c].ids;
    const auto [at_a, at_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    if (at_a == a.end() && at_b == b.end()) continue;
    Difference d{static_cast<int32_t>(c), at_a - a.begin(), std::nullopt, std::nullopt};
    if (at_a != a.end()) d.recorded = *at_a;
    if (at_b != b.end()) d.again = *at_b;
    return d;
  }
  if (output_sha256(again) != stamp.output_sha256) return Difference{};
  return std::nullopt;
}

}  // namespace minfer
