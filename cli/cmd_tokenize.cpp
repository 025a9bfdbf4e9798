// minfer tokenize MODEL [TEXT|-] and minfer detokenize MODEL [ID...|-]: text to token ids and back; the vocabulary
// alone is read.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "common.h"
#include "open_vocab.h"
#include "options.h"
#include "tokenizer/stream_decode.h"

namespace minfer::cli {
namespace {

constexpr size_t kMaxInputBytes = size_t{256} << 20;  // bounds what is read from stdin; far beyond any prompt

constexpr const char* kModelHelp =
    "a GGUF file (a vocabulary alone will do), a tokenizer.json, or the name of a cached model";

struct TokenizeFlags {
  std::string model, text;
  bool special = false, has_text = false, no_bos = false, json = false;
};

struct DetokenizeFlags {
  std::string model;
  std::vector<std::string> ids;
  bool special = false, json = false;
};

const char* type_text(TokenType type) {
  switch (type) {
    case TokenType::kNormal: return "normal";
    case TokenType::kUnknown: return "unknown";
    case TokenType::kControl: return "control";
    case TokenType::kUserDefined: return "user_defined";
    case TokenType::kUnused: return "unused";
    case TokenType::kByte: return "byte";
  }
  return "normal";
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

void print_json(const nlohmann::ordered_json& j) {
  std::printf("%s\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

Result<int> tokenize(const TokenizeFlags& f) {
  const Tokenizer tokenizer = MINFER_TRY(open_tokenizer(f.model));
  std::string text = f.text;
  if (!f.has_text || f.text == "-") text = MINFER_TRY(read_stdin(kMaxInputBytes));
  const auto ids = MINFER_TRY(tokenizer.encode(text, {.add_special = !f.no_bos, .parse_special = f.special}));
  if (!f.json) {
    std::string line;
    for (const int32_t id : ids) line += (line.empty() ? "" : " ") + std::to_string(id);
    std::printf("%s\n", line.c_str());
    return kOk;
  }
  nlohmann::ordered_json j;
  j["n_tokens"] = ids.size();
  j["ids"] = ids;
  auto& tokens = j["tokens"] = nlohmann::ordered_json::array();
  for (const int32_t id : ids) {
    const std::string_view piece = tokenizer.piece(id);
    const std::string shown = utf8_replace(piece);
    nlohmann::ordered_json t = {
        {"id", id}, {"piece", shown}, {"text", tokenizer.text(id)}, {"type", type_text(tokenizer.type(id))}};
    if (shown != piece) t["bytes"] = hex(piece);  // part of a character: the bytes say which
    tokens.push_back(std::move(t));
  }
  print_json(j);
  return kOk;
}

Result<int> detokenize(const DetokenizeFlags& f) {
  const Tokenizer tokenizer = MINFER_TRY(open_tokenizer(f.model));
  std::string list;
  if (f.ids.empty() || (f.ids.size() == 1 && f.ids[0] == "-")) {
    list = MINFER_TRY(read_stdin(kMaxInputBytes));
  } else {
    for (const auto& word : f.ids) list += word + " ";
  }
  const auto ids = MINFER_TRY(parse_ids(list, tokenizer.n_vocab(), "token ids"));
  const std::string text = MINFER_TRY(tokenizer.decode(ids, {.show_control = f.special}));
  if (f.json) {
    const std::string shown = utf8_replace(text);
    nlohmann::ordered_json j = {{"text", shown}};
    if (shown != text) j["bytes"] = hex(text);
    print_json(j);
    return kOk;
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  // The bytes as they are, so that a pipe gets back what was tokenized; a terminal gets its line end.
  if (isatty(STDOUT_FILENO) != 0) std::fputc('\n', stdout);
  return kOk;
}

}  // namespace

void add_tokenize(CLI::App& app, Exit exit) {
  {
    auto f = std::make_shared<TokenizeFlags>();
    CLI::App* sub = app.add_subcommand("tokenize", "text to token ids");
    add_model(*sub, f->model, kModelHelp);
    auto* text = add_any_text(*sub, "text", f->text, "the text, any bytes; '-' or nothing reads standard input");
    add_special(*sub, f->special, "on: text that spells a control token becomes that token (default off)");
    sub->add_flag("--no-bos", f->no_bos, "leave out the bos and eos that the vocabulary asks for");
    sub->add_flag("--json", f->json, "one JSON object: ids, and for each token its piece, spelling and type");
    sub->footer(
        "Examples:\n  minfer tokenize smollm2 \"Hello world\"\n  minfer tokenize smollm2 --json --special on "
        "\"<|im_start|>user\"\n  minfer tokenize model.gguf < file.txt");
    on_run(*sub, exit, [f, text] {
      f->has_text = text->count() > 0;
      return tokenize(*f);
    });
  }
  auto f = std::make_shared<DetokenizeFlags>();
  CLI::App* sub = app.add_subcommand("detokenize", "token ids to text");
  add_model(*sub, f->model, kModelHelp);
  sub->add_option("ids", f->ids, "token ids, separated by spaces or commas; '-' or nothing reads standard input");
  add_special(*sub, f->special, "on: control tokens appear as their text (default off)");
  sub->add_flag("--json", f->json, "one JSON object");
  sub->footer(
      "Examples:\n  minfer detokenize smollm2 19556 905\n  minfer tokenize smollm2 \"Hello\" | minfer detokenize "
      "smollm2");
  on_run(*sub, exit, [f] { return detokenize(*f); });
}

}  // namespace minfer::cli
