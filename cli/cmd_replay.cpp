// minfer replay FILE: computes recorded answers again and says whether every bit is the same.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "batch_input.h"
#include "batch_output.h"
#include "chat/json.h"
#include "common.h"
#include "model_hash.h"
#include "open_engine.h"
#include "options.h"
#include "prompt.h"
#include "server/stamp.h"
#include "serving_flags.h"
#include "shown_answer.h"
#include "tokenizer/stream_decode.h"

namespace minfer::cli {
namespace {

constexpr size_t kWindow = 128;                    // answers computed at once
constexpr size_t kWindowBytes = size_t{64} << 20;  // of their lines
constexpr int kMaxDifferences = 10;                // shown, and as many lines that cannot be read

struct ReplayFlags {
  ServingFlags serving;
  InsightFlags insight;
  std::string file, model, template_file;
  bool all = false;
};

struct Recorded {
  std::string where;                            // "line 3", "line 3, prompt 2"
  std::shared_ptr<const nlohmann::json> shown;  // of its line
  ShownPlace place;
  size_t bytes = 0;  // of its line, where it is the last of it
  Stamp stamp;
  std::optional<Stream> stream;
};

// What holds the stamps of one record: the line of a batch, a response body, what `run --json --stamp` printed.
const chat::Value& holder_of(const chat::Value& record) {
  const chat::Value* response = record.find("response");
  const chat::Value* body = response != nullptr ? response->find("body") : nullptr;
  return body != nullptr ? *body : record;
}

const chat::Value* stamps_of(const chat::Value& record) {
  if (const chat::Value* stamp = holder_of(record).find("minfer")) return stamp;
  return record.find("model_sha256") != nullptr ? &record : nullptr;
}

class Replay {
 public:
  explicit Replay(const ReplayFlags& flags) : flags_(flags) {}

  Result<int> run() {
    MINFER_TRY(flags_.serving.options());
    MINFER_TRY(flags_.insight.check());
    if (!flags_.template_file.empty()) template_ = MINFER_TRY(template_source(flags_.template_file));
    BatchInput input = MINFER_TRY(BatchInput::open(flags_.file, kMaxResultBytes));
    while (const auto line = MINFER_TRY(input.next())) {
      if (interrupted()) return kInterrupted;
      if (line->blank) continue;
      if (const Status s = read(*line); !s.ok()) MINFER_TRY(unreadable(*line, s.error()));
      while (waiting_.size() >= kWindow || waiting_bytes_ >= kWindowBytes) MINFER_TRY(compare());
      if (n_differ_ > 0 && !flags_.all) break;
    }
    while (!waiting_.empty()) {
      if (interrupted()) return kInterrupted;
      MINFER_TRY(compare());
    }
    if (n_same_ + n_differ_ + n_unreadable_ == 0) {
      return make_error(ErrorCode::kCorrupt, "'{}': there is no stamped answer in it{}", flags_.file,
                        n_without_ > 0 ? " (made with --no-stamp, or refused requests)" : "");
    }
    if (n_differ_ > 0) {
      std::printf("%lld of %lld answers differ\n", static_cast<long long>(n_differ_),
                  static_cast<long long>(n_differ_ + n_same_));
    } else if (n_same_ > 0) {
      std::printf("the same, bit for bit: %lld answers, %lld tokens\n", static_cast<long long>(n_same_),
                  static_cast<long long>(n_tokens_));
    }
    waiting_.clear();
    if (opened_.engine != nullptr) MINFER_TRY(opened_.finish());
    if (n_without_ > 0) {
      std::fprintf(stderr, "minfer: %lld lines hold no stamp\n", static_cast<long long>(n_without_));
    }
    if (n_unreadable_ > 0) {
      std::fprintf(stderr, "minfer: %lld lines could not be compared\n", static_cast<long long>(n_unreadable_));
    }
    return n_differ_ + n_unreadable_ == 0 ? kOk : kFailed;
  }

 private:
  // One line that cannot be compared says nothing of the others; without a model none of them can.
  Status unreadable(const BatchLine& line, const Error& error) {
    Error e = error;
    e.message = fmt::format("'{}', line {}: {}", flags_.file, line.number, e.message);
    if (no_model_) return e;
    if (++n_unreadable_ <= kMaxDifferences) report(e);
    return {};
  }

  Status read(const BatchLine& line) {
    if (line.too_long) return make_error(ErrorCode::kOutOfRange, "more than {} bytes", kMaxResultBytes);
    const auto record = MINFER_TRY(of_file(chat::parse_json(line.text)));
    const chat::Value* stamps = stamps_of(record);
    if (stamps == nullptr) {
      ++n_without_;
      return {};
    }
    std::vector<Recorded> answers;
    const auto add = [&](std::string where, const chat::Value& value) -> Status {
      const size_t first = answers.empty() ? 0 : answers.back().place.first + answers.back().stamp.token_ids.size();
      if (!answers.empty()) answers.back().place.last = false;
      Stamp stamp = MINFER_TRY(of_file(read_stamp(value)));
      MINFER_TRY(need_engine(stamp.model));
      answers.push_back({std::move(where), nullptr, {first, true}, 0, std::move(stamp), std::nullopt});
      return {};
    };
    const std::string where = fmt::format("line {}", line.number);
    if (!stamps->is_sequence()) {
      MINFER_TRY(add(where, *stamps));
    } else {
      for (size_t i = 0; i < stamps->items().size(); ++i) {
        MINFER_TRY(add(fmt::format("{}, prompt {}", where, i), stamps->items()[i]));
      }
    }
    if (answers.empty()) {
      ++n_without_;
      return {};
    }
    answers.back().bytes = line.text.size();
    const auto shown = std::make_shared<const nlohmann::json>(shown_part(holder_of(record)));
    waiting_bytes_ += line.text.size();
    for (Recorded& r : answers) {
      while (waiting_.size() >= kWindow) MINFER_TRY(compare());
      r.shown = shown;
      Request request = replay_request(r.stamp);
      request.on_event = [](const Event&) { return true; };  // the response has it all
      auto stream = of_file(opened_.engine->submit(std::move(request)));
      if (!stream.ok()) {
        waiting_bytes_ -= line.text.size();
        return stream.error();
      }
      r.stream = std::move(stream).value();
      waiting_.push_back(std::move(r));
    }
    return {};
  }

  // The one engine of the file: all its answers come from one model.
  Status need_engine(const StampedModel& model) {
    if (opened_.engine != nullptr) {
      if (model.sha256 == model_.sha256 && model.cache_type_k == model_.cache_type_k &&
          model.cache_type_v == model_.cache_type_v)
        return {};
      return make_error(ErrorCode::kUnsupported, "another model, or another type of KV cache, than the lines before");
    }
    no_model_ = true;
    std::string name = flags_.model;
    if (name.empty()) {
      const auto known = model_with_sha256(model.sha256);
      if (!known) {
        return make_error(ErrorCode::kNotFound,
                          "no model with the hash {} is known here; --model names the file or cached model",
                          model.sha256);
      }
      name = *known;
    }
    auto found = MINFER_TRY(open_model(name));
    const std::string hash = MINFER_TRY(model_sha256(*found->file()));
    if (hash != model.sha256) {
      return make_error(ErrorCode::kUnsupported, "made with the model of hash {}, '{}' has {}", model.sha256, name,
                        hash);
    }
    EngineOptions options = MINFER_TRY(flags_.serving.options());
    options.cache_type_k = model.cache_type_k;
    options.cache_type_v = model.cache_type_v;
    format_ = chat::AnswerFormat::detect(template_.empty() ? found->chat_template() : template_);
    opened_ = MINFER_TRY(open_engine(std::move(found), options, flags_.insight));
    model_ = model;
    no_model_ = false;
    return {};
  }

  std::string token(std::optional<int32_t> id) const {
    if (!id) return "the end";
    const Tokenizer* t = opened_.engine->model().tokenizer();
    if (t == nullptr || !t->valid(*id)) return std::to_string(*id);
    return fmt::format("{} \"{}\"", *id, for_terminal(utf8_replace(t->piece(*id))));
  }

  Status compare() {
    Recorded r = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= r.bytes;
    const Response response = MINFER_TRY(r.stream->wait());
    const auto difference = first_difference(r.stamp, response.choices);
    std::optional<std::string> shown;
    if (!difference) {
      shown = shown_difference(*r.shown, r.place, r.stamp, response, opened_.engine->model().tokenizer(), *format_);
    }
    if (!difference && !shown) {
      ++n_same_;
      n_tokens_ += response.generated_tokens;
      return {};
    }
    if (++n_differ_ > kMaxDifferences) return {};
    if (shown) {
      std::printf("%s, what is shown is not what was computed: %s\n", r.where.c_str(), for_terminal(*shown).c_str());
      return {};
    }
    if (difference->token < 0) {
      std::printf("%s: the same tokens, but another text\n", r.where.c_str());
      return {};
    }
    std::printf("%s, choice %d, token %lld: recorded %s, now %s\n", r.where.c_str(), difference->choice,
                static_cast<long long>(difference->token), token(difference->recorded).c_str(),
                token(difference->again).c_str());
    return {};
  }

  const ReplayFlags& flags_;
  OpenedEngine opened_;
  StampedModel model_;
  std::string template_;
  std::optional<chat::AnswerFormat> format_;
  bool no_model_ = false;  // looked for, and not opened
  std::deque<Recorded> waiting_;
  size_t waiting_bytes_ = 0;
  int64_t n_same_ = 0, n_differ_ = 0, n_without_ = 0, n_unreadable_ = 0, n_tokens_ = 0;
};

}  // namespace

void add_replay(CLI::App& app, Exit exit) {
  auto f = std::make_shared<ReplayFlags>();
  CLI::App* sub = app.add_subcommand("replay", "compute recorded answers again and compare every bit");
  add_text(*sub, "file", f->file, "the output of minfer batch, or of minfer run --json --stamp")->required();
  add_text(*sub, "--model,-m", f->model, "the model; found by its hash where minfer has seen it before");
  add_text(*sub, "--template", f->template_file,
           "the chat template that the batch was given; it says how messages show reasoning and tool calls");
  sub->add_flag("--all", f->all, "go on after the first difference");
  f->insight.add_to(*sub);
  f->serving.add_to(*sub, /*with_cache_type=*/false);  // the record says which
  sub->footer(
      "Exit code 0: all answers are the same; 1: some differ from their stamps or from what\n"
      "their records show, or could not be compared; the rest is, all the same.\n\n"
      "Example:\n  minfer run smollm2 \"Hello\" --json --stamp > answer.json\n  minfer replay answer.json");
  on_run(
      *sub, exit, [f] { return Replay(*f).run(); }, /*polls_interrupt=*/true);
}

}  // namespace minfer::cli
