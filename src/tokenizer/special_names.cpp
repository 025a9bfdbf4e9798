// Vocabulary::name_specials: the tokens with a part to play, by the file's word or by their text.
#include <algorithm>

#include "tokenizer/vocabulary.h"

namespace minfer {
namespace {

// Tokens that end an answer, known by their text. All end a turn or a document in the models that have them.
constexpr std::string_view kEndNames[] = {
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<end_of_turn>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|end_of_turn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|eot|>",
    "<|EOT|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "<end_of_utterance>",
    "<\xef\xbd\x9c"
    "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
};

// The spellings that models use for their fill-in-the-middle tokens, where the file does not name them.
constexpr std::string_view kFimNames[][6] = {
    // prefix, suffix, middle, padding, repository, file
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>", "<repo_name>", "<file_sep>"},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>", "<fim-pad>", "<reponame>", "<filename>"},
    {"<|fim_begin|>", "<|fim_end|>", "<|fim_hole|>", "", "", ""},
    {"<\xef\xbd\x9c"
     "fim\xe2\x96\x81"
     "begin\xef\xbd\x9c>",
     "<\xef\xbd\x9c"
     "fim\xe2\x96\x81hole\xef\xbd\x9c>",
     "<\xef\xbd\x9c"
     "fim\xe2\x96\x81"
     "end\xef\xbd\x9c>",
     "", "", ""},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "", "", ""},
    {"\xe2\x96\x81<PRE>", "\xe2\x96\x81<SUF>", "\xe2\x96\x81<MID>", "", "", ""},
    {"<PRE>", "<SUF>", "<MID>", "", "", ""},
    {"[PREFIX]", "[SUFFIX]", "[MIDDLE]", "", "", ""},
};

bool looks_special(std::string_view text) {
  return text.size() >= 3 &&
         ((text.front() == '<' && text.back() == '>') || (text.front() == '[' && text.back() == ']'));
}

}  // namespace

void Vocabulary::name_specials(const VocabData& data) {
  bos = data.bos, eos = data.eos, eot = data.eot, unk = data.unk, sep = data.sep, pad = data.pad, mask = data.mask;
  fim = data.fim;
  const auto or_named = [&](TokenId& id, std::string_view name) {
    if (id == kNoToken) id = find(name);
  };
  if (!data.rules && (kind == VocabKind::kSpm || kind == VocabKind::kUnigram)) {
    // Files that do not say mean SentencePiece's own names.
    if (kind == VocabKind::kSpm) or_named(bos, "<s>");
    or_named(eos, "</s>");
    or_named(unk, "<unk>");
  }
  if (!data.rules && kind == VocabKind::kWordPiece) {
    or_named(bos, "[CLS]");
    or_named(sep, "[SEP]");
    or_named(unk, "[UNK]");
    or_named(mask, "[MASK]");
  }
  for (const auto& names : kFimNames) {
    if (fim.prefix != kNoToken || fim.suffix != kNoToken || fim.middle != kNoToken) break;
    if (find(names[0]) == kNoToken || find(names[1]) == kNoToken || find(names[2]) == kNoToken) continue;
    fim.prefix = find(names[0]), fim.suffix = find(names[1]), fim.middle = find(names[2]);
    or_named(fim.pad, names[3]);
    or_named(fim.repo, names[4]);
    or_named(fim.file, names[5]);
  }

  eog = data.more_eog;
  for (const TokenId id : {eos, eot}) eog.push_back(id);
  // A vocabulary with <|return|> and <|call|> uses <|end|> between the messages of one answer.
  const bool end_is_inner = find("<|return|>") != kNoToken && find("<|call|>") != kNoToken;
  for (const std::string_view name : kEndNames) {
    if (!(end_is_inner && name == "<|end|>")) eog.push_back(find(name));
  }
  std::sort(eog.begin(), eog.end());
  eog.erase(std::unique(eog.begin(), eog.end()), eog.end());
  if (!eog.empty() && eog.front() == kNoToken) eog.erase(eog.begin());

  // Some files mark these as ordinary; a message that spells them must still not end its turn.
  std::vector<TokenId> ends = eog;
  ends.push_back(bos);
  for (const TokenId id : ends) {
    if (id == kNoToken) continue;
    TokenType& t = types[static_cast<size_t>(id)];
    if ((t == TokenType::kNormal || t == TokenType::kUserDefined) && looks_special(text(id))) t = TokenType::kControl;
  }
}

}  // namespace minfer
