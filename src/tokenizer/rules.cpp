// See rules.h: what the keys of a GGUF file ask for.
#include "tokenizer/rules.h"

#include "base/error.h"
#include "tokenizer/pretokenizers.h"
#include "tokenizer/vocabulary.h"

namespace minfer {
namespace {

Result<TextRules> merge_rules(const VocabData& data) {
  const std::string name = data.model == "gemma4" ? "gemma4" : data.pre.empty() ? "default" : data.pre;
  const NamedPretokenizer* named = find_pretokenizer(name);
  if (!named) {
    return make_error(ErrorCode::kUnsupported, "[tokenizer] pre-tokenizer '{}' is unknown; known: {}",
                      data.pre.substr(0, 80), pretokenizer_names());
  }
  if (data.merges.empty() && data.tokens.size() > 256) {
    return make_error(ErrorCode::kCorrupt, "[tokenizer] merges: found none for {} tokens, expected those of {} BPE",
                      data.tokens.size(), named->characters ? "character" : "byte-level");
  }
  TextRules rules;
  rules.ignore_merges = named->ignore_merges;
  if (named->nfc) rules.normalize.push_back({.kind = Normalizer::Kind::kNfc});
  for (SplitStep& split : MINFER_TRY(named->steps())) {
    rules.steps.push_back({.kind = PreStep::Kind::kSplit, .split = std::move(split)});
  }
  if (named->characters) {
    rules.kind = VocabKind::kCharBpe;
    rules.byte_fallback = true;
    rules.marks_spaces = true;
    if (data.add_space_prefix.value_or(false)) {
      rules.normalize.push_back({.kind = Normalizer::Kind::kPrepend, .to = std::string(kSpaceMark)});
      rules.strip_first = true;
    }
    rules.normalize.push_back({.kind = Normalizer::Kind::kReplace, .from = " ", .to = std::string(kSpaceMark)});
  } else if (data.add_space_prefix.value_or(false)) {
    rules.steps.insert(rules.steps.begin(), {.kind = PreStep::Kind::kSpacePrefix});
    rules.strip_first = true;
  }
  return rules;
}

Result<TextRules> unigram_rules(const VocabData& data) {
  TextRules rules;
  rules.kind = VocabKind::kUnigram;
  rules.byte_fallback = true;
  rules.marks_spaces = true;
  Normalizer n{.kind = Normalizer::Kind::kSentencePiece};
  n.collapse = data.remove_extra_whitespaces.value_or(false);
  n.prefix = rules.strip_first = data.add_space_prefix.value_or(true);
  if (!data.charsmap.empty()) n.map = std::make_shared<Charsmap>(MINFER_TRY(Charsmap::make(data.charsmap)));
  rules.normalize.push_back(std::move(n));
  return rules;
}

Result<TextRules> word_piece_rules(const VocabData& data) {
  TextRules rules;
  rules.kind = VocabKind::kWordPiece;
  rules.continuing.clear();
  rules.strip_first = true;
  rules.cleanup = true;
  Normalizer n{.kind = Normalizer::Kind::kBert};
  n.lowercase = data.lowercase.value_or(true);
  n.strip_accents = data.strip_accents.value_or(n.lowercase);
  rules.normalize.push_back(std::move(n));
  MINFER_TRY(add_bert_steps(rules.steps));
  return rules;
}

}  // namespace

Status add_bert_steps(std::vector<PreStep>& steps) {
  steps.push_back({.split = MINFER_TRY(SplitStep::make(R"(\s)", SplitHow::kRemoved))});
  steps.push_back({.split = MINFER_TRY(SplitStep::make(R"([\p{P}\$\+<=>\^~\|`])"))});
  return {};
}

Result<TextRules> rules_for_gguf(const VocabData& data) {
  if (data.model == "gpt2" || data.model == "gemma4") return merge_rules(data);
  if (data.model == "t5") return unigram_rules(data);
  if (data.model == "bert") return word_piece_rules(data);
  if (data.model != "llama") {
    return make_error(ErrorCode::kUnsupported,
                      "[tokenizer] model '{}' is unknown; known: bert, gemma4, gpt2, llama, t5",
                      data.model.substr(0, 80));
  }
  TextRules rules;
  rules.kind = VocabKind::kSpm;
  rules.marks_spaces = true;
  rules.space_prefix = rules.strip_first = data.add_space_prefix.value_or(true);
  return rules;
}

}  // namespace minfer
