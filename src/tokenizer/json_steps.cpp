// See json_steps.h.
#include "tokenizer/json_steps.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/vocabulary.h"

namespace minfer {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 8;  // of sequences in sequences

Error refuse(const char* where, const std::string& what) {
  return make_error(ErrorCode::kUnsupported, "[tokenizer.json] {}: {} is not supported", where, what.substr(0, 200));
}

Result<std::string> type_of(const Json& j, const char* where, int depth) {
  if (depth > kMaxDepth) return refuse(where, "a sequence so deep");
  if (!j.is_object()) return refuse(where, "a value that is no object");
  return json_text(j, "type", "", where);
}

// {"String": "x"} or {"Regex": "x"}.
struct TextOrRegex {
  std::string text;
  bool is_regex = false;
};

Result<TextOrRegex> read_text_or_regex(const Json& j, const char* where) {
  const auto it = j.find("pattern");
  if (it != j.end() && it->is_object() && it->size() == 1) {
    for (const char* key : {"String", "Regex"}) {
      if (!it->contains(key)) continue;
      TextOrRegex p{MINFER_TRY(json_text(*it, key, "", where)), key[0] == 'R'};
      if (p.text.empty()) return refuse(where, "an empty pattern");
      return p;
    }
  }
  return refuse(where, "a pattern that is neither 'String' nor 'Regex'");
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool sign =
        (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
    if (sign) out += '\\';
    out += c;
  }
  return out;
}

Result<SplitHow> read_how(const Json& j, const std::string& fallback, const char* where) {
  const std::string name = MINFER_TRY(json_text(j, "behavior", fallback, where));
  if (name == "Isolated") return SplitHow::kIsolated;
  if (name == "Removed") return SplitHow::kRemoved;
  if (name == "MergedWithPrevious") return SplitHow::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitHow::kMergedWithNext;
  if (name == "Contiguous") return SplitHow::kContiguous;
  return refuse(where, "behavior '" + name + "'");
}

Result<std::vector<uint8_t>> base64(const std::string& text, const char* where) {
  std::vector<uint8_t> out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int n = 0;
  size_t pad = 0;
  for (const char c : text) {
    if (c == '=') {
      ++pad;
      continue;
    }
    const int v = c >= 'A' && c <= 'Z'   ? c - 'A'
                  : c >= 'a' && c <= 'z' ? c - 'a' + 26
                  : c >= '0' && c <= '9' ? c - '0' + 52
                  : c == '+'             ? 62
                  : c == '/'             ? 63
                                         : -1;
    if (v < 0 || pad > 0) return refuse(where, "a precompiled_charsmap that is not base64");
    bits = bits << 6 | static_cast<uint32_t>(v);
    if (++n % 4 == 0) {
      for (int shift = 16; shift >= 0; shift -= 8) out.push_back(static_cast<uint8_t>(bits >> shift));
      bits = 0;
    }
  }
  const int left = n % 4;
  if (left == 1) return refuse(where, "a precompiled_charsmap that is not base64");
  if (left >= 2) out.push_back(static_cast<uint8_t>(bits >> (left == 2 ? 4 : 10)));
  if (left == 3) out.push_back(static_cast<uint8_t>(bits >> 2));
  return out;
}

Status read_byte_level(const Json& j, JsonPreTokenizer& out, const char* where) {
  if (out.byte_level) return refuse(where, "a second 'ByteLevel'");
  out.byte_level = true;
  if (MINFER_TRY(json_flag(j, "add_prefix_space", true, where))) {
    out.steps.push_back({.kind = PreStep::Kind::kSpacePrefix});
  }
  if (MINFER_TRY(json_flag(j, "use_regex", true, where))) {
    PreStep step;
    step.split.scan = split_gpt2;
    out.steps.push_back(std::move(step));
  }
  return {};
}

Status read_metaspace(const Json& j, JsonPreTokenizer& out, const char* where) {
  PreStep step{.kind = PreStep::Kind::kMetaspace};
  step.mark = MINFER_TRY(json_text(j, "replacement", std::string(kSpaceMark), where));
  if (step.mark != kSpaceMark) return refuse(where, "Metaspace with the replacement '" + step.mark + "'");
  const bool legacy = MINFER_TRY(json_flag(j, "add_prefix_space", true, where));
  const std::string scheme = MINFER_TRY(json_text(j, "prepend_scheme", legacy ? "always" : "never", where));
  if (scheme == "always")
    step.prefix = PreStep::Prefix::kAlways;
  else if (scheme == "first")
    step.prefix = PreStep::Prefix::kFirst;
  else if (scheme == "never")
    step.prefix = PreStep::Prefix::kNever;
  else
    return refuse(where, "Metaspace with prepend_scheme '" + scheme + "'");
  step.cut = MINFER_TRY(json_flag(j, "split", true, where));
  out.steps.push_back(std::move(step));
  return {};
}

// A step after ByteLevel sees the stand-in characters of bytes: these two mean the same for bytes.
Status read_after_byte_level(const Json& j, const std::string& type, JsonPreTokenizer& out, const char* where) {
  if (type == "Digits" && !MINFER_TRY(json_flag(j, "individual_digits", false, where))) {
    PreStep step;
    step.split.scan = split_byte_digits;
    out.steps.push_back(std::move(step));
    return {};
  }
  if (type == "Split") {
    const TextOrRegex p = MINFER_TRY(read_text_or_regex(j, where));
    const SplitHow how = MINFER_TRY(read_how(j, "", where));
    if (p.text == "[0-9][0-9][0-9]" && how == SplitHow::kIsolated) {
      out.steps.push_back({.split = MINFER_TRY(SplitStep::make(p.text))});
      return {};
    }
  }
  return refuse(where, "'" + type + "' after 'ByteLevel'");
}

Result<TokenId> token_of(const Json& j, const char* where) {
  if (!j.is_array() || j.size() != 2 || !j[1].is_number_unsigned() || j[1].get<uint64_t>() > INT32_MAX) {
    return refuse(where, "a token that is not [text, id]");
  }
  return static_cast<TokenId>(j[1].get<uint64_t>());
}

Status read_template(const Json& j, std::vector<TokenId>& before, std::vector<TokenId>& after, const char* where) {
  const auto single = j.find("single");
  const auto known = j.find("special_tokens");
  if (single == j.end() || !single->is_array()) return refuse(where, "TemplateProcessing without 'single'");
  bool seen = false;
  for (const Json& part : *single) {
    if (part.is_object() && part.contains("Sequence")) {
      if (seen) return refuse(where, "a template with the text twice");
      seen = true;
      continue;
    }
    if (!part.is_object() || !part.contains("SpecialToken")) return refuse(where, "this part of a template");
    const std::string name = MINFER_TRY(json_text(part["SpecialToken"], "id", "", where));
    if (known == j.end() || !known->is_object() || !known->contains(name)) {
      return refuse(where, "a template's token '" + name + "' without ids");
    }
    const Json& token = (*known)[name];
    if (!token.is_object() || !token.contains("ids") || !token["ids"].is_array()) {
      return refuse(where, "a template's token '" + name + "' without ids");
    }
    for (const Json& id : token["ids"]) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX) return refuse(where, "a token id " + id.dump());
      (seen ? after : before).push_back(static_cast<TokenId>(id.get<uint64_t>()));
    }
  }
  if (!seen) return refuse(where, "a template without the text");
  return {};
}

}  // namespace

Result<bool> json_flag(const Json& j, const char* key, bool fallback, const char* where) {
  const auto it = j.find(key);
  if (it == j.end() || it->is_null()) return fallback;
  if (!it->is_boolean()) return refuse(where, std::string("'") + key + "' that is no boolean");
  return it->get<bool>();
}

Result<std::string> json_text(const Json& j, const char* key, const std::string& fallback, const char* where) {
  if (!j.is_object()) return refuse(where, "a value that is no object");
  const auto it = j.find(key);
  if (it == j.end() || it->is_null()) return fallback;
  if (!it->is_string()) return refuse(where, std::string("'") + key + "' that is no string");
  return it->get<std::string>();
}

Status read_normalizer(const Json& j, std::vector<Normalizer>& steps, int depth) {
  constexpr const char* kWhere = "normalizer";
  using Kind = Normalizer::Kind;
  if (j.is_null()) return {};
  const std::string type = MINFER_TRY(type_of(j, kWhere, depth));
  if (type == "Sequence") {
    const auto parts = j.find("normalizers");
    if (parts == j.end() || !parts->is_array()) return refuse(kWhere, "Sequence without 'normalizers'");
    for (const Json& part : *parts) MINFER_TRY(read_normalizer(part, steps, depth + 1));
    return {};
  }
  static constexpr std::pair<std::string_view, Kind> kPlain[] = {{"NFC", Kind::kNfc},
                                                                 {"NFD", Kind::kNfd},
                                                                 {"NFKC", Kind::kNfkc},
                                                                 {"NFKD", Kind::kNfkd},
                                                                 {"Lowercase", Kind::kLowercase},
                                                                 {"StripAccents", Kind::kStripAccents},
                                                                 {"Nmt", Kind::kNmt}};
  for (const auto& [name, kind] : kPlain) {
    if (type != name) continue;
    steps.push_back({.kind = kind});
    return {};
  }
  Normalizer n;
  if (type == "BertNormalizer") {
    n.kind = Kind::kBert;
    n.clean = MINFER_TRY(json_flag(j, "clean_text", true, kWhere));
    n.chinese = MINFER_TRY(json_flag(j, "handle_chinese_chars", true, kWhere));
    n.lowercase = MINFER_TRY(json_flag(j, "lowercase", true, kWhere));
    n.strip_accents = MINFER_TRY(json_flag(j, "strip_accents", n.lowercase, kWhere));
  } else if (type == "Replace") {
    n.kind = Kind::kReplace;
    n.to = MINFER_TRY(json_text(j, "content", "", kWhere));
    const TextOrRegex p = MINFER_TRY(read_text_or_regex(j, kWhere));
    if (p.is_regex) {
      n.pattern = std::make_shared<Pattern>(MINFER_TRY(Pattern::compile(p.text)));
      if (n.pattern->can_be_empty()) return refuse(kWhere, "Replace with a pattern that matches nothing");
    } else {
      n.from = p.text;
    }
  } else if (type == "Prepend") {
    n.kind = Kind::kPrepend;
    n.to = MINFER_TRY(json_text(j, "prepend", "", kWhere));
  } else if (type == "Strip") {
    n.kind = Kind::kStrip;
    n.left = MINFER_TRY(json_flag(j, "strip_left", true, kWhere));
    n.right = MINFER_TRY(json_flag(j, "strip_right", true, kWhere));
  } else if (type == "Precompiled") {
    n.kind = Kind::kPrecompiled;
    const std::string text = MINFER_TRY(json_text(j, "precompiled_charsmap", "", kWhere));
    if (text.empty()) return {};
    n.map = std::make_shared<Charsmap>(MINFER_TRY(Charsmap::make(MINFER_TRY(base64(text, kWhere)))));
  } else {
    return refuse(kWhere, "'" + type + "'");
  }
  steps.push_back(std::move(n));
  return {};
}

Status read_pre_tokenizer(const Json& j, JsonPreTokenizer& out, int depth) {
  constexpr const char* kWhere = "pre_tokenizer";
  if (j.is_null()) return {};
  const std::string type = MINFER_TRY(type_of(j, kWhere, depth));
  if (type == "Sequence") {
    const auto parts = j.find("pretokenizers");
    if (parts == j.end() || !parts->is_array()) return refuse(kWhere, "Sequence without 'pretokenizers'");
    for (const Json& part : *parts) MINFER_TRY(read_pre_tokenizer(part, out, depth + 1));
    return {};
  }
  const auto add = [&](std::string_view regex, SplitHow how, bool invert = false) -> Status {
    out.steps.push_back({.split = MINFER_TRY(SplitStep::make(regex, how, invert))});
    return {};
  };
  constexpr std::string_view kSign = R"([\p{P}\$\+<=>\^~\|`])";
  if (type == "ByteLevel") return read_byte_level(j, out, kWhere);
  if (out.byte_level) return read_after_byte_level(j, type, out, kWhere);
  if (type == "Metaspace") return read_metaspace(j, out, kWhere);
  if (type == "Split") {
    const TextOrRegex p = MINFER_TRY(read_text_or_regex(j, kWhere));
    return add(p.is_regex ? p.text : escaped(p.text), MINFER_TRY(read_how(j, "", kWhere)),
               MINFER_TRY(json_flag(j, "invert", false, kWhere)));
  }
  if (type == "Digits") {
    const bool each = MINFER_TRY(json_flag(j, "individual_digits", false, kWhere));
    return add(R"(\p{N})", each ? SplitHow::kIsolated : SplitHow::kContiguous);
  }
  if (type == "Punctuation") return add(kSign, MINFER_TRY(read_how(j, "Isolated", kWhere)));
  if (type == "Whitespace") {
    // \w as Rust's regular expressions have it.
    constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D})";
    return add(fmt::format("[{0}]+|[^{0}\\s]+", kWord), SplitHow::kRemoved, true);
  }
  if (type == "WhitespaceSplit") return add(R"(\s)", SplitHow::kRemoved);
  if (type == "BertPreTokenizer") return add_bert_steps(out.steps);
  if (type == "CharDelimiterSplit") {
    const std::string delimiter = MINFER_TRY(json_text(j, "delimiter", "", kWhere));
    if (delimiter.empty()) return refuse(kWhere, "CharDelimiterSplit without 'delimiter'");
    return add(escaped(delimiter), SplitHow::kRemoved);
  }
  return refuse(kWhere, "'" + type + "'");
}

Status read_decoder(const Json& j, JsonDecoder& out, int depth) {
  constexpr const char* kWhere = "decoder";
  if (j.is_null()) return {};
  const std::string type = MINFER_TRY(type_of(j, kWhere, depth));
  out.present = true;
  if (type == "Sequence") {
    const auto parts = j.find("decoders");
    if (parts == j.end() || !parts->is_array()) return refuse(kWhere, "Sequence without 'decoders'");
    for (const Json& part : *parts) MINFER_TRY(read_decoder(part, out, depth + 1));
  } else if (type == "ByteLevel") {
    out.byte_level = true;
  } else if (type == "ByteFallback") {
    out.byte_fallback = true;
  } else if (type == "Fuse") {
  } else if (type == "Replace") {
    const TextOrRegex p = MINFER_TRY(read_text_or_regex(j, kWhere));
    if (p.is_regex || p.text != kSpaceMark || MINFER_TRY(json_text(j, "content", "", kWhere)) != " ") {
      return refuse(kWhere, "Replace of anything but U+2581 by a space");
    }
    out.marks_spaces = true;
  } else if (type == "Strip") {
    const bool one = j.value("start", Json()) == 1 && j.value("stop", Json()) == 0;
    if (!one || MINFER_TRY(json_text(j, "content", "", kWhere)) != " ") {
      return refuse(kWhere, "Strip of anything but one space at the start");
    }
    out.strip_first = true;
  } else if (type == "Metaspace") {
    out.marks_spaces = true;
    const bool legacy = MINFER_TRY(json_flag(j, "add_prefix_space", true, kWhere));
    out.strip_first = MINFER_TRY(json_text(j, "prepend_scheme", legacy ? "always" : "never", kWhere)) != "never";
  } else if (type == "WordPiece") {
    out.word_piece = true;
    out.cleanup = MINFER_TRY(json_flag(j, "cleanup", true, kWhere));
  } else {
    return refuse(kWhere, "'" + type + "'");
  }
  return {};
}

Status read_post_processor(const Json& j, std::vector<TokenId>& before, std::vector<TokenId>& after, int depth) {
  constexpr const char* kWhere = "post_processor";
  if (j.is_null()) return {};
  const std::string type = MINFER_TRY(type_of(j, kWhere, depth));
  if (type == "ByteLevel") return {};  // about offsets only
  if (type == "Sequence") {
    const auto parts = j.find("processors");
    if (parts == j.end() || !parts->is_array()) return refuse(kWhere, "Sequence without 'processors'");
    for (const Json& part : *parts) MINFER_TRY(read_post_processor(part, before, after, depth + 1));
    return {};
  }
  if (!before.empty() || !after.empty()) return refuse(kWhere, "a second template");
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    before.push_back(MINFER_TRY(token_of(j.value("cls", Json()), kWhere)));
    after.push_back(MINFER_TRY(token_of(j.value("sep", Json()), kWhere)));
    return {};
  }
  if (type == "TemplateProcessing") return read_template(j, before, after, kWhere);
  return refuse(kWhere, "'" + type + "'");
}

}  // namespace minfer
