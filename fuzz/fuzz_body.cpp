// Fuzz target: request bodies of OpenAI's API and stamps. The first byte chooses what the rest is read as. What is
// accepted has to be within its bounds, and a stamp that is accepted has to come back the same.
// Layers: server
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "chat/json.h"
#include "server/openai/body.h"
#include "server/stamp.h"

namespace {

void require(bool ok) {
  if (!ok) std::abort();
}

void check_body(minfer::openai::Endpoint endpoint, const minfer::chat::Value& value) {
  const auto body = minfer::openai::parse_body(endpoint, value, {});
  if (!body.ok()) {
    require(!body.error().message.empty() && body.error().message.size() < 10'000);
    return;
  }
  const minfer::Request& r = body->request;
  require(r.n >= 1 && r.n <= minfer::openai::kMaxChoices && r.max_tokens >= -1);
  require(r.best_of == 0 || (r.best_of >= r.n && r.best_of <= minfer::openai::kMaxChoices));
  require(r.top_logprobs >= 0 && r.top_logprobs <= minfer::openai::kMaxTopLogprobs);
  require(minfer::check_sampling(r.sampling).ok());
  if (endpoint == minfer::openai::Endpoint::kEmbedding) return;
  // What a body asks for survives its stamp.
  std::vector<minfer::Choice> choices(static_cast<size_t>(r.n));
  const auto stamped = minfer::make_stamp({"m", "f16", "f16"}, r, choices);
  const auto text = stamped.dump(-1, ' ', false, nlohmann::json::error_handler_t::strict);
  const auto again = minfer::chat::parse_json(text);
  require(again.ok());
  const auto stamp = minfer::read_stamp(*again);
  require(stamp.ok());
  require(minfer::make_stamp(stamp->model, stamp->request, choices).dump() == text);
}

void check_stamp(const minfer::chat::Value& value) {
  const auto stamp = minfer::read_stamp(value);
  if (!stamp.ok()) return;
  require(stamp->token_ids.size() == static_cast<size_t>(stamp->request.n));
  std::vector<minfer::Choice> choices(stamp->token_ids.size());
  for (size_t i = 0; i < choices.size(); ++i) choices[i].ids = stamp->token_ids[i];
  const auto difference = minfer::first_difference(*stamp, choices);
  require(!difference || difference->token == -1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto value = minfer::chat::parse_json(text);
  if (!value.ok()) return 0;
  if (data[0] % 4 == 3) {
    check_stamp(*value);
  } else {
    check_body(static_cast<minfer::openai::Endpoint>(data[0] % 4), *value);
  }
  return 0;
}
