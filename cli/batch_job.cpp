// Parsing, submitting, collecting.
#include "batch_job.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/sha256.h"
#include "batch_output.h"
#include "chat/json.h"
#include "engine/model_breakers.h"
#include "server/openai/fields.h"

namespace minfer::cli {
namespace {

using Json = nlohmann::ordered_json;

// One line may cost this much memory: some ten million tokens, or a million with twenty log-probabilities each.
constexpr int64_t kMaxCost = int64_t{2} << 30;
constexpr int64_t kChoiceBytes = 8192;  // what the engine keeps for a choice beside its ids
constexpr int64_t kTokenBytes = 32;     // an id in memory and as text twice, and its piece of text
constexpr int64_t kLogprobBytes = 160;  // one as JSON, with the token's text and bytes

Status read_id(openai::Fields& fields, const char* key, LineRequest& out) {
  const chat::Value* id = fields.take(key);
  if (id == nullptr) return {};
  constexpr size_t kMaxId = 512;
  const bool text = id->is_string() && id->as_string().size() <= kMaxId;
  if (!text && !id->is(chat::Value::Kind::kInt)) {
    return openai::bad_field(key, *id,
                             fmt::format("a string of at most {} bytes or a whole number of 64 bits", kMaxId));
  }
  out.key = key;
  out.id = *id;
  return {};
}

Status parse_envelope(const chat::Value& line, LineRequest& out) {
  openai::Fields fields = MINFER_TRY(openai::Fields::of(line, ""));
  MINFER_TRY(read_id(fields, "custom_id", out));
  std::string method = "POST", url;
  MINFER_TRY(fields.text("method", method));
  if (method != "POST") return openai::bad_field("method", chat::Value::string(method), "\"POST\"");
  out.body = *fields.take("body");
  const bool named = MINFER_TRY(fields.text("url", url));
  MINFER_TRY(fields.finish());
  const auto endpoint = named ? openai::endpoint_from_url(url) : openai::endpoint_of_body(out.body);
  if (!endpoint) {
    return openai::bad_field("url", chat::Value::string(url),
                             "\"/v1/chat/completions\", \"/v1/completions\" or \"/v1/embeddings\"");
  }
  out.endpoint = *endpoint;
  return {};
}

}  // namespace

void Bell::ring() {
  {
    const std::lock_guard lock(mutex_);
    rung_ = true;
  }
  rung_cv_.notify_one();
}

void Bell::wait(int ms) {
  std::unique_lock lock(mutex_);
  rung_cv_.wait_for(lock, std::chrono::milliseconds(ms), [&] { return rung_; });
  rung_ = false;
}

// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014: the mixing of SplitMix64.
uint64_t line_seed(uint64_t batch_seed, int64_t number) {
  uint64_t z = batch_seed + 0x9e3779b97f4a7c15ULL * static_cast<uint64_t>(number);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return (z ^ (z >> 31)) >> 11;
}

Status parse_line(const std::string& text, LineRequest& out) {
  const chat::Value line = MINFER_TRY(chat::parse_json(text, chat::TwiceSaid::kRefuse));
  if (!line.is_dict()) return openai::bad_field("line", line, "a JSON object");
  const chat::Value* body = line.find("body");
  if (body != nullptr && !body->is_none()) return parse_envelope(line, out);

  // A body alone; its "id" is no field of the API.
  openai::Fields fields = MINFER_TRY(openai::Fields::of(line, ""));
  MINFER_TRY(read_id(fields, "custom_id", out));
  if (out.key.empty()) MINFER_TRY(read_id(fields, "id", out));
  chat::Dict rest;
  for (const auto& [key, value] : line.as_dict().entries()) {
    const std::string& name = key.as_string();
    const bool no_id = value.is_none() && (name == "id" || name == "custom_id");
    if (!no_id && (out.key.empty() || name != out.key)) rest.set(key, value);
  }
  out.body = chat::Value::dict(std::move(rest));
  const auto endpoint = openai::endpoint_of_body(out.body);
  if (!endpoint) {
    return make_error(ErrorCode::kInvalidArgument,
                      "expected a \"body\" with a \"url\", or one of \"messages\", \"prompt\" and \"input\"");
  }
  out.endpoint = *endpoint;
  return {};
}

Result<DryBreakers::Ids> DryBreakers::of(const std::optional<std::vector<std::string>>& texts) {
  if (!texts) return usual_;
  if (tokenizer_ == nullptr) return Ids();
  if (*texts != last_texts_) {
    last_ = MINFER_TRY(minfer::dry_breakers(*texts, *tokenizer_));
    last_texts_ = *texts;
  }
  return last_;
}

BatchJob::BatchJob(const BatchContext& context, const BatchLine& line)
    : context_(context), number_(line.number), hash_(line.hash) {
  constexpr size_t kIdDigits = 24;
  reply_id_ = sha256_hex(fmt::format("{}/{}", number_, hash_text(hash_))).substr(0, kIdDigits);
  auto status = prepare(line);
  if (!status.ok()) error_ = std::move(status).error();
}

Status BatchJob::prepare(const BatchLine& line) {
  if (line.too_long) {
    return make_error(ErrorCode::kOutOfRange, "the line has more than {} bytes", kMaxLineBytes);
  }
  MINFER_TRY(parse_line(line.text, request_));
  openai::BodyDefaults defaults = context_.defaults;
  defaults.sampling.seed = line_seed(defaults.sampling.seed, number_);
  body_ = MINFER_TRY(openai::parse_body(request_.endpoint, request_.body, defaults));
  request_.body = {};
  if (!context_.only_model.empty() && !body_.model.empty() && body_.model != context_.only_model) {
    return openai::bad_field("model", chat::Value::string(body_.model), "\"" + context_.only_model + "\"");
  }
  if (body_.stream) return make_error(ErrorCode::kUnsupported, "stream: found true: a batch does not stream");
  cost_ = static_cast<int64_t>(line.text.size());
  MINFER_TRY(embeds() ? prepare_embedding() : prepare_prompts());
  return check_cost();
}

Status BatchJob::prepare_prompts() {
  Request& base = body_.request;
  if (base.sampling.dry_multiplier != 0) {
    base.sampling.dry_breakers = MINFER_TRY(context_.dry_breakers->of(body_.dry_breakers));
    MINFER_TRY(check_sampling(base.sampling));
  }
  base.on_event = [bell = context_.bell](const Event& event) {
    if (event.finish) bell->ring();
    return true;
  };
  if (body_.endpoint == openai::Endpoint::kChat) {
    auto prompt = MINFER_TRY(context_.prompt.encode(body_));
    answered_.push_back({base, {}, prompt.thinking_open});
    answered_.back().request.prompt = std::move(prompt.ids);
    return {};
  }
  const Tokenizer* tokenizer = context_.prompt.model().tokenizer();
  for (openai::Prompt& prompt : body_.prompts) {
    answered_.push_back({base, {}, false});
    std::vector<int32_t>& ids = answered_.back().request.prompt;
    if (auto* given = std::get_if<std::vector<int32_t>>(&prompt)) {
      ids = std::move(*given);
    } else if (tokenizer != nullptr) {
      ids = MINFER_TRY(
          tokenizer->encode(std::get<std::string>(prompt), {.add_special = true, .parse_special = base.parse_special}));
    } else {
      return make_error(ErrorCode::kUnsupported, "prompt: this model has no vocabulary, expected ids");
    }
  }
  return {};
}

Status BatchJob::prepare_embedding() {
  for (openai::Prompt& input : body_.prompts) {
    if (std::holds_alternative<std::string>(input)) {
      body_.embed.texts.push_back(std::move(std::get<std::string>(input)));
    } else {
      body_.embed.prompts.push_back(std::move(std::get<std::vector<int32_t>>(input)));
    }
  }
  constexpr int64_t kNumberBytes = 32;  // as a JSON value and as text
  cost_ += kNumberBytes * static_cast<int64_t>(body_.prompts.size()) * context_.prompt.model().hparams().n_embd;
  return {};
}

Status BatchJob::check_cost() {
  for (const openai::Answered& a : answered_) {
    const Request& r = a.request;
    const auto n_prompt = static_cast<int64_t>(r.prompt.size()), n_ctx = int64_t{context_.engine.n_ctx()};
    const int64_t room = std::max<int64_t>(n_ctx - n_prompt, 0) + 1;
    const int64_t n_choices = std::max(r.n, r.best_of);
    const int64_t n_new = n_choices * (r.max_tokens < 0 ? room : std::min<int64_t>(r.max_tokens, room));
    const int64_t per_token = kTokenBytes + (r.logprobs ? kLogprobBytes * (1 + r.top_logprobs) : 0);
    cost_ += n_new * per_token + n_prompt * (r.prompt_logprobs ? per_token : kTokenBytes);
    // Each choice has its own copy of the prompt and of the sampling parameters; DRY finds each id of a breaker in a
    // map.
    constexpr size_t kBreakerIdBytes = 64;
    size_t breakers = 0;
    for (const auto& ids : r.sampling.dry_breakers) breakers += sizeof ids + ids.size() * kBreakerIdBytes;
    const size_t parameters = r.sampling.logit_bias.size() * sizeof r.sampling.logit_bias[0] + breakers;
    cost_ += n_choices *
             (kChoiceBytes + n_prompt * static_cast<int64_t>(sizeof(int32_t)) + static_cast<int64_t>(parameters));
    if (cost_ > kMaxCost) {
      return make_error(ErrorCode::kResourceExhausted,
                        "the answers may take {} bytes, a line at most {}: fewer choices, tokens or log-probabilities",
                        cost_, kMaxCost);
    }
  }
  return {};
}

void BatchJob::start() {
  if (error_) return;
  if (embeds()) {
    body_.embed.on_done = [bell = context_.bell] { bell->ring(); };
    auto pending = context_.engine.submit(std::move(body_.embed));
    if (!pending.ok()) {
      error_ = std::move(pending).error();
    } else {
      embeddings_ = std::move(pending).value();
    }
    return;
  }
  for (const openai::Answered& a : answered_) {
    auto stream = context_.engine.submit(a.request);
    if (!stream.ok()) {
      error_ = std::move(stream).error();
      streams_.clear();  // cancels the others
      return;
    }
    streams_.emplace_back(std::move(stream).value());
    ++n_open_;
  }
}

bool BatchJob::done() {
  if (error_) return true;
  if (embeds()) return embeddings_->done();
  for (size_t i = 0; n_open_ > 0 && i < streams_.size(); ++i) {
    if (!streams_[i] || !streams_[i]->done()) continue;
    auto response = streams_[i]->wait();
    if (!response.ok()) {
      error_ = std::move(response).error();
      streams_.clear();
      return true;
    }
    answered_[i].response = std::move(response).value();
    streams_[i].reset();
    --n_open_;
  }
  return n_open_ == 0;
}

Status BatchJob::collect(Json& body) {
  openai::ReplyOptions options;
  options.id = reply_id_;
  options.model = context_.prompt.model().name();
  options.cached_tokens = context_.cached_tokens;
  if (embeds()) {
    const Embeddings e = MINFER_TRY(embeddings_->wait());
    prompt_tokens_ = e.prompt_tokens, cached_tokens_ = e.cached_tokens;
    body = openai::embedding_reply(body_, e, options);
    return {};
  }
  body = openai::reply(body_, answered_, context_.prompt.model().tokenizer(), context_.prompt.format(), options);
  auto stamps = Json::array();
  for (const openai::Answered& a : answered_) {
    prompt_tokens_ += a.response.prompt_tokens;
    cached_tokens_ += a.response.cached_tokens;
    generated_tokens_ += a.response.generated_tokens;
    if (context_.stamp) stamps.push_back(make_stamp(context_.model, a.request, a.response.choices));
  }
  if (stamps.size() == 1) {
    body["minfer"] = std::move(stamps[0]);
  } else if (!stamps.empty()) {
    body["minfer"] = std::move(stamps);
  }
  return {};
}

std::string BatchJob::failure() const {
  Json error;
  error["code"] = error_code_name(error_->code);
  error["message"] = fmt::format("line {}: {}", number_, error_->message);
  return "\"response\":null,\"error\":" + openai::line_of(error) + "}\n";
}

std::string BatchJob::result() {
  Json body;
  if (!error_) {
    auto status = collect(body);
    if (!status.ok()) error_ = std::move(status).error();
  }
  std::string line = line_head(number_, hash_);
  if (!request_.key.empty()) {
    Json id = request_.id.is_string() ? Json(request_.id.as_string()) : Json(request_.id.as_int());
    line += fmt::format("\"{}\":{},", request_.key, openai::line_of(id));
  }
  if (error_) return line + failure();
  return line + "\"response\":{\"status_code\":200,\"body\":" + openai::line_of(body) + "},\"error\":null}\n";
}

}  // namespace minfer::cli
