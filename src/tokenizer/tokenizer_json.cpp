// See tokenizer_json.h.
#include "tokenizer/tokenizer_json.h"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "tokenizer/json_steps.h"
#include "tokenizer/rules.h"

namespace minfer {

using Json = nlohmann::json;

struct JsonVocab::Storage {
  Json root;
  std::deque<std::string> normalized;  // texts of added tokens
};

namespace {

constexpr const char* kModel = "model";

template <typename... Args>
Error fault(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorCode::kCorrupt, "[tokenizer.json] {}", fmt::format(format, std::forward<Args>(args)...));
}

Error refuse(const std::string& what) {
  return make_error(ErrorCode::kUnsupported, "[tokenizer.json] {} is not supported", what.substr(0, 200));
}

Result<Json> parse(std::string_view text, const char* name) {
  Json root = Json::parse(text, nullptr, false);
  if (root.is_discarded() || !root.is_object()) {
    return make_error(ErrorCode::kCorrupt, "[{}] {} bytes: no JSON object", name, text.size());
  }
  return root;
}

const Json& member(const Json& j, const char* key) {
  static const Json none;
  const auto it = j.find(key);
  return it == j.end() ? none : *it;
}

class Loader {
 public:
  explicit Loader(JsonVocab::Storage& storage) : storage_(storage), root_(storage.root) {}

  Result<VocabData> load(const Json& config) {
    auto rules = std::make_shared<TextRules>();
    rules_ = rules.get();
    MINFER_TRY(read_normalizer(member(root_, "normalizer"), rules->normalize));
    JsonPreTokenizer pre;
    MINFER_TRY(read_pre_tokenizer(member(root_, "pre_tokenizer"), pre));
    rules->steps = std::move(pre.steps);
    MINFER_TRY(read_decoder(member(root_, "decoder"), decoder_));
    MINFER_TRY(read_post_processor(member(root_, "post_processor"), rules->before, rules->after));
    MINFER_TRY(read_model(pre.byte_level));
    MINFER_TRY(read_added());
    mark_bytes();
    MINFER_TRY(check_decoder(pre.byte_level));
    for (const auto* ids : {&rules->before, &rules->after}) {
      for (const TokenId id : *ids) {
        if (static_cast<size_t>(id) >= data_.tokens.size())
          return fault("post_processor: token {} is not in the vocabulary", id);
      }
    }
    if (rules->before.size() == 1) data_.bos = rules->before[0];
    MINFER_TRY(read_config(config));
    data_.rules = std::move(rules);
    return std::move(data_);
  }

 private:
  Status read_model(bool byte_level) {
    const Json& model = member(root_, kModel);
    if (!model.is_object()) return fault("model: found none");
    std::string type = MINFER_TRY(json_text(model, "type", model.contains("merges") ? "BPE" : "", kModel));
    data_.model = type;
    if (type == "BPE") {
      rules_->kind = byte_level ? VocabKind::kByteBpe : VocabKind::kCharBpe;
      MINFER_TRY(read_map(model));
      return read_bpe(model);
    }
    if (byte_level) return refuse("model '" + type + "' with the pre-tokenizer 'ByteLevel'");
    if (type == "WordPiece") {
      rules_->kind = VocabKind::kWordPiece;
      MINFER_TRY(read_map(model));
      return read_word_piece(model);
    }
    if (type == "Unigram") {
      rules_->kind = VocabKind::kUnigram;
      return read_unigram(model);
    }
    return refuse("model '" + type + "' (known: BPE, Unigram, WordPiece)");
  }

  // Makes room for token `id`; a made-up id cannot ask for memory that the file's size does not warrant.
  Status make_room(uint64_t id, size_t count) {
    if (id >= 4 * static_cast<uint64_t>(count) + 65536) {
      return fault("token id {}: too large for a vocabulary of {} tokens", id, count);
    }
    if (id < data_.tokens.size()) return {};
    data_.tokens.resize(id + 1);
    data_.types.resize(id + 1, static_cast<int32_t>(TokenType::kUnused));
    return {};
  }

  void put(uint64_t id, const std::string& text, TokenType type) {
    data_.tokens[id] = text;
    data_.types[id] = static_cast<int32_t>(type);
  }

  // {"text": id, ...}
  Status read_map(const Json& model) {
    const Json& vocab = member(model, "vocab");
    if (!vocab.is_object() || vocab.empty()) return fault("model: found no 'vocab'");
    const size_t count = vocab.size();
    data_.tokens.reserve(count);
    for (auto it = vocab.begin(); it != vocab.end(); ++it) {
      if (!it->is_number_unsigned()) return fault("vocab: found {}, expected a token id", it->dump().substr(0, 40));
      const auto id = it->get<uint64_t>();
      MINFER_TRY(make_room(id, count));
      if (data_.types[id] != static_cast<int32_t>(TokenType::kUnused))
        return fault("vocab: two tokens have the id {}", id);
      put(id, it.key(), TokenType::kNormal);
    }
    return {};
  }

  Result<TokenId> find(const std::string& text) const {
    const auto it = std::find(data_.tokens.begin(), data_.tokens.end(), text);
    if (text.empty() || it == data_.tokens.end()) return fault("'{}' is not in the vocabulary", text.substr(0, 80));
    return static_cast<TokenId>(it - data_.tokens.begin());
  }

  Status read_unk(const Json& model) {
    const std::string unk = MINFER_TRY(json_text(model, "unk_token", "", kModel));
    if (!unk.empty()) data_.unk = MINFER_TRY(find(unk));
    return {};
  }

  Status read_bpe(const Json& model) {
    const Json& dropout = member(model, "dropout");
    if (!dropout.is_null() && dropout != 0) return refuse("model BPE with dropout");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const std::string text = MINFER_TRY(json_text(model, key, "", kModel));
      if (!text.empty()) return refuse(std::string("model BPE with ") + key + " '" + text + "'");
    }
    rules_->fuse_unk = MINFER_TRY(json_flag(model, "fuse_unk", false, kModel));
    rules_->byte_fallback = MINFER_TRY(json_flag(model, "byte_fallback", false, kModel));
    rules_->ignore_merges = MINFER_TRY(json_flag(model, "ignore_merges", false, kModel));
    if (rules_->byte_fallback && rules_->kind == VocabKind::kByteBpe) return refuse("byte_fallback with 'ByteLevel'");
    MINFER_TRY(read_unk(model));
    const Json& merges = member(model, "merges");
    if (!merges.is_array()) return fault("model: found no 'merges'");
    data_.merge_pairs.reserve(merges.size());
    for (size_t i = 0; i < merges.size(); ++i) {
      const Json& m = merges[i];
      if (m.is_array() && m.size() == 2 && m[0].is_string() && m[1].is_string()) {
        data_.merge_pairs.push_back({m[0].get_ref<const std::string&>(), m[1].get_ref<const std::string&>()});
        continue;
      }
      const std::string_view line =
          m.is_string() ? std::string_view(m.get_ref<const std::string&>()) : std::string_view();
      const size_t space = line.find(' ');
      if (space == 0 || space == std::string_view::npos || space + 1 == line.size() ||
          line.find(' ', space + 1) != std::string_view::npos) {
        return fault("merges[{}]: expected two texts", i);
      }
      data_.merge_pairs.push_back({line.substr(0, space), line.substr(space + 1)});
    }
    return {};
  }

  Status read_word_piece(const Json& model) {
    rules_->continuing = MINFER_TRY(json_text(model, "continuing_subword_prefix", "##", kModel));
    if (rules_->continuing.empty()) return refuse("model WordPiece without continuing_subword_prefix");
    const Json& longest = member(model, "max_input_chars_per_word");
    if (!longest.is_null()) {
      if (!longest.is_number_unsigned()) return fault("max_input_chars_per_word: expected a number");
      rules_->max_word_chars = longest.get<uint64_t>();
    }
    return read_unk(model);
  }

  // [["text", score], ...]
  Status read_unigram(const Json& model) {
    const Json& vocab = member(model, "vocab");
    if (!vocab.is_array() || vocab.empty()) return fault("model: found no 'vocab'");
    for (size_t i = 0; i < vocab.size(); ++i) {
      const Json& t = vocab[i];
      if (!t.is_array() || t.size() != 2 || !t[0].is_string() || !t[1].is_number()) {
        return fault("vocab[{}]: expected a text and a score", i);
      }
      MINFER_TRY(make_room(i, vocab.size()));
      put(i, t[0].get_ref<const std::string&>(), TokenType::kNormal);
      data_.exact_scores.push_back(t[1].get<double>());
    }
    const Json& unk = member(model, "unk_id");
    if (!unk.is_null()) {
      if (!unk.is_number_unsigned() || unk.get<uint64_t>() >= vocab.size()) return fault("unk_id: expected a token id");
      data_.unk = static_cast<TokenId>(unk.get<uint64_t>());
    }
    rules_->byte_fallback = MINFER_TRY(json_flag(model, "byte_fallback", false, kModel));
    return {};
  }

  Status read_added() {
    const Json& added = member(root_, "added_tokens");
    if (added.is_null()) return {};
    if (!added.is_array()) return fault("added_tokens: expected a list");
    std::vector<std::pair<std::string_view, TokenId>> texts;  // of the model, for those that it has already
    texts.reserve(data_.tokens.size());
    for (size_t i = 0; i < data_.tokens.size(); ++i) texts.push_back({data_.tokens[i], static_cast<TokenId>(i)});
    std::sort(texts.begin(), texts.end());
    const size_t count = data_.tokens.size() + added.size();
    for (const Json& a : added) {
      constexpr const char* kWhere = "added_tokens";
      if (!a.is_object() || !member(a, "id").is_number_unsigned() || !member(a, "content").is_string()) {
        return fault("added_tokens: expected objects with 'id' and 'content'");
      }
      const auto id = a["id"].get<uint64_t>();
      const auto& text = a["content"].get_ref<const std::string&>();
      const auto it = std::lower_bound(texts.begin(), texts.end(), std::pair(std::string_view(text), kNoToken));
      if (it != texts.end() && it->first == text && !text.empty() && static_cast<uint64_t>(it->second) != id) {
        return fault("added token '{}': the id {}, but {} in the vocabulary", text.substr(0, 80), id, it->second);
      }
      MINFER_TRY(make_room(id, count));
      const bool taken = data_.types[id] != static_cast<int32_t>(TokenType::kUnused);
      if (taken && data_.tokens[id] != text)
        return fault("added token '{}': its id {} is taken", text.substr(0, 80), id);
      const bool special = MINFER_TRY(json_flag(a, "special", false, kWhere));
      const bool unknown = special && static_cast<TokenId>(id) == data_.unk && names_unknown(text);
      put(id, text, unknown ? TokenType::kUnknown : special ? TokenType::kControl : TokenType::kUserDefined);
      AddedToken token{.id = static_cast<TokenId>(id), .outside = !taken};
      token.lstrip = MINFER_TRY(json_flag(a, "lstrip", false, kWhere));
      token.rstrip = MINFER_TRY(json_flag(a, "rstrip", false, kWhere));
      token.single_word = MINFER_TRY(json_flag(a, "single_word", false, kWhere));
      token.normalized = MINFER_TRY(json_flag(a, "normalized", !special, kWhere)) && !rules_->normalize.empty();
      data_.added.push_back(token);
    }
    // Those that are looked for in normalized text are spelled as they are there.
    std::string buffer, scratch;
    for (const AddedToken& token : data_.added) {
      if (!token.normalized) continue;
      std::string_view& text = data_.tokens[static_cast<size_t>(token.id)];
      storage_.normalized.emplace_back(MINFER_TRY(normalize(rules_->normalize, text, buffer, scratch)));
      text = storage_.normalized.back();
    }
    if (!data_.exact_scores.empty()) data_.exact_scores.resize(data_.tokens.size(), 0.0);
    return {};
  }

  // "<unk>", "[UNK]", ...: a token that may stand for any text, unlike an end of text that some files name as unknown.
  static bool names_unknown(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return lower.find("unk") != std::string::npos;
  }

  // <0x00> .. <0xFF> are bytes where the model falls back on them.
  void mark_bytes() {
    if (!rules_->byte_fallback) return;
    for (size_t i = 0; i < data_.tokens.size(); ++i) {
      const std::string_view t = data_.tokens[i];
      const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
      const bool byte = t.size() == 6 && t.substr(0, 3) == "<0x" && is_hex(t[3]) && is_hex(t[4]) && t[5] == '>';
      if (byte && data_.types[i] == static_cast<int32_t>(TokenType::kNormal))
        data_.types[i] = static_cast<int32_t>(TokenType::kByte);
    }
  }

  Status check_decoder(bool byte_level) {
    if (decoder_.byte_level != byte_level)
      return refuse("a decoder 'ByteLevel' without the pre-tokenizer, or the other way round");
    if (rules_->kind == VocabKind::kWordPiece && decoder_.present != decoder_.word_piece)
      return refuse("model WordPiece with another decoder");
    if (rules_->kind != VocabKind::kWordPiece && decoder_.word_piece)
      return refuse("decoder 'WordPiece' with another model");
    if (rules_->byte_fallback && decoder_.present && !decoder_.byte_fallback)
      return refuse("byte_fallback without the decoder 'ByteFallback'");
    rules_->marks_spaces = decoder_.marks_spaces;
    rules_->cleanup = decoder_.cleanup;
    // Without a decoder the tokens' texts are joined by spaces.
    rules_->join_with_spaces = !decoder_.present;
    rules_->strip_first = decoder_.strip_first || decoder_.word_piece || rules_->join_with_spaces;
    return {};
  }

  Status read_config(const Json& config) {
    const auto name = [&](const char* key, TokenId& id) -> Status {
      const Json& value = member(config, key);
      const Json& text = value.is_object() ? member(value, "content") : value;
      if (text.is_null()) return {};
      if (!text.is_string()) return refuse(std::string("tokenizer_config: '") + key + "' that is no text");
      const auto it = std::find(data_.tokens.begin(), data_.tokens.end(), text.get_ref<const std::string&>());
      if (it != data_.tokens.end()) id = static_cast<TokenId>(it - data_.tokens.begin());
      return {};
    };
    TokenId unk = kNoToken;  // the model's own is what counts
    MINFER_TRY(name("bos_token", data_.bos));
    MINFER_TRY(name("eos_token", data_.eos));
    MINFER_TRY(name("pad_token", data_.pad));
    MINFER_TRY(name("sep_token", data_.sep));
    MINFER_TRY(name("mask_token", data_.mask));
    return name("unk_token", unk);
  }

  JsonVocab::Storage& storage_;
  const Json& root_;
  TextRules* rules_ = nullptr;
  JsonDecoder decoder_;
  VocabData data_;
};

}  // namespace

Result<JsonVocab> vocab_from_json(std::string_view json, std::string_view config) {
  auto storage = std::make_shared<JsonVocab::Storage>();
  storage->root = MINFER_TRY(parse(json, "tokenizer.json"));
  const Json names = config.empty() ? Json::object() : MINFER_TRY(parse(config, "tokenizer_config.json"));
  JsonVocab vocab;
  vocab.data = MINFER_TRY(Loader(*storage).load(names));
  vocab.storage = std::move(storage);
  return vocab;
}

Result<Tokenizer> tokenizer_from_json(std::string_view json, std::string_view config) {
  const JsonVocab vocab = MINFER_TRY(vocab_from_json(json, config));
  return Tokenizer::create(vocab.data);
}

}  // namespace minfer
