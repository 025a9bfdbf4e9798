// BatchJob: one line of a batch, from its text to the line of its result.
// Errors:  none: what is wrong with a line is its result.
// Threads: one owner; the answers are computed on the engine's thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "batch_input.h"
#include "chat/value.h"
#include "minfer/engine.h"
#include "server/chat_prompt.h"
#include "server/openai/body.h"
#include "server/openai/reply.h"
#include "server/stamp.h"

namespace minfer::cli {

// Rung by the engine when an answer may be complete.
class Bell {
 public:
  void ring();
  void wait(int ms);

 private:
  std::mutex mutex_;
  std::condition_variable rung_cv_;
  bool rung_ = false;
};

// DRY's sequence breakers as ids. Texts that line after line names are looked up once.
// Threads: one at a time.
class DryBreakers {
 public:
  using Ids = std::vector<std::vector<int32_t>>;
  // `usual`: where a line names none. `tokenizer` outlives this; null: no vocabulary, so no text breaks anything.
  DryBreakers(const Tokenizer* tokenizer, Ids usual) : tokenizer_(tokenizer), usual_(std::move(usual)) {}

  const Ids& usual() const { return usual_; }
  Result<Ids> of(const std::optional<std::vector<std::string>>& texts);

 private:
  const Tokenizer* tokenizer_;
  Ids usual_, last_;
  std::vector<std::string> last_texts_;
};

// What all lines of a batch share. It outlives the engine's requests.
struct BatchContext {
  Engine& engine;
  const ChatPrompt& prompt;
  openai::BodyDefaults defaults;              // the seed is that of the batch; each line gets its own from it
  std::shared_ptr<DryBreakers> dry_breakers;  // for lines with DRY
  StampedModel model;
  std::string only_model;  // lines that name another model are refused; empty: any name will do
  bool stamp = true, cached_tokens = false;
  std::shared_ptr<Bell> bell;
};

// The seed of a line that names none: of the batch's seed and the line's number, below 2^53, so that every reader of
// JSON can hold it.
uint64_t line_seed(uint64_t batch_seed, int64_t number);

// What a line asks: {"custom_id", "method", "url", "body"}, or a body with an optional "id".
struct LineRequest {
  std::string key;  // "custom_id" or "id": the name under which `id` comes back; empty: the line has none
  chat::Value id;
  openai::Endpoint endpoint = openai::Endpoint::kChat;
  chat::Value body;
};
// `out` receives the id as soon as it is known, so that also a refusal can carry it.
Status parse_line(const std::string& text, LineRequest& out);

class BatchJob {
 public:
  BatchJob(const BatchContext& context, const BatchLine& line);

  // Hands the work to the engine.
  void start();
  // Takes the answers that are complete, so that the engine can let go of them. True: nothing is left to wait for.
  bool done();
  // Requires: done(). The result's line, with its line end.
  std::string result();

  int64_t number() const { return number_; }
  bool refused() const { return error_.has_value(); }
  bool embeds() const { return request_.endpoint == openai::Endpoint::kEmbedding; }
  // Bytes that it may need until it is written, at most.
  int64_t cost() const { return cost_; }
  int64_t prompt_tokens() const { return prompt_tokens_; }
  int64_t cached_tokens() const { return cached_tokens_; }
  int64_t generated_tokens() const { return generated_tokens_; }

 private:
  Status prepare(const BatchLine& line);
  Status prepare_prompts();
  Status prepare_embedding();
  Status check_cost();
  Status collect(nlohmann::ordered_json& body);
  std::string failure() const;

  const BatchContext& context_;
  int64_t number_;
  uint64_t hash_;
  std::string reply_id_;
  LineRequest request_;
  openai::Body body_;
  std::vector<openai::Answered> answered_;      // the requests; the responses once they are there
  std::vector<std::optional<Stream>> streams_;  // one per prompt; empty once its answer is taken
  std::optional<PendingEmbeddings> embeddings_;
  std::optional<Error> error_;
  size_t n_open_ = 0;  // streams
  int64_t cost_ = 0, prompt_tokens_ = 0, cached_tokens_ = 0, generated_tokens_ = 0;
};

}  // namespace minfer::cli
