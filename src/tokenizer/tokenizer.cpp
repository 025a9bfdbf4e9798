// See tokenizer.h. Encoding: control and user-defined tokens are cut out first; each stretch between them is
// normalised, cut into pieces and merged.
#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "tokenizer/bpe.h"
#include "tokenizer/pre_steps.h"
#include "tokenizer/pretokenizers.h"
#include "tokenizer/rules.h"
#include "tokenizer/special_matcher.h"
#include "tokenizer/spm.h"
#include "tokenizer/unigram.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_piece.h"

namespace minfer {
namespace {

// Offsets within a text are 32 bits wide; escaping a space triples it.
constexpr size_t kMaxTextBytes = size_t{1} << 30;

}  // namespace

struct Tokenizer::Impl {
  std::string model, pre;
  TextRules rules;
  Vocabulary vocab;
  SpecialMatcher specials;             // looked for in the text as it comes
  SpecialMatcher normalized_specials;  // looked for in the normalized text
  Bpe bpe;                             // kByteBpe, kCharBpe
  SpmBpe spm;                          // kSpm
  Unigram unigram;                     // kUnigram
  WordPiece word_piece;                // kWordPiece

  mutable std::mutex mutex;  // guards `idle`
  mutable std::vector<std::unique_ptr<Scratch>> idle;

  std::unique_ptr<Scratch> take_scratch() const {
    std::lock_guard lock(mutex);
    if (idle.empty()) return std::make_unique<Scratch>();
    auto scratch = std::move(idle.back());
    idle.pop_back();
    return scratch;
  }
  void give_back(std::unique_ptr<Scratch> scratch) const {
    if (!scratch->small()) return;
    std::lock_guard lock(mutex);
    idle.push_back(std::move(scratch));
  }

  Status build(const VocabData& data) {
    vocab = MINFER_TRY(Vocabulary::make(data, rules));
    switch (rules.kind) {
      case VocabKind::kByteBpe:
      case VocabKind::kCharBpe: MINFER_TRY(bpe.build(vocab, data, rules)); break;
      case VocabKind::kSpm: spm.build(vocab); break;
      case VocabKind::kUnigram: MINFER_TRY(unigram.build(vocab, rules.byte_fallback)); break;
      case VocabKind::kWordPiece: MINFER_TRY(word_piece.build(vocab, rules)); break;
    }
    MINFER_TRY(build_specials(data));
    if (!data.rules) name_surroundings(data);
    return {};
  }

  Status build_specials(const VocabData& data) {
    std::vector<SpecialToken> raw, normalized;
    std::vector<const AddedToken*> flags(vocab.size(), nullptr);
    for (const AddedToken& t : data.added) {
      if (t.id != kNoToken) flags[static_cast<size_t>(t.id)] = &t;
    }
    for (size_t i = 0; i < vocab.size(); ++i) {
      if (!is_special(vocab.types[i])) continue;
      SpecialToken token;
      // User-defined tokens of SentencePiece files may spell spaces as U+2581; their pieces have real spaces.
      const bool spelled = rules.kind == VocabKind::kWordPiece || rules.join_with_spaces;
      token.text = spelled ? vocab.texts[i] : vocab.pieces[i];
      token.id = static_cast<TokenId>(i);
      token.anywhere = vocab.types[i] == TokenType::kUserDefined;
      if (flags[i]) {
        token.lstrip = flags[i]->lstrip;
        token.rstrip = flags[i]->rstrip;
        token.single_word = flags[i]->single_word;
      }
      if (flags[i] && flags[i]->normalized && !rules.normalize.empty()) {
        token.text = vocab.texts[i];
        normalized.push_back(std::move(token));
      } else {
        raw.push_back(std::move(token));
      }
    }
    MINFER_TRY(specials.build(std::move(raw)));
    return normalized_specials.build(std::move(normalized));
  }

  // What a GGUF file's keys say should stand before and after a text.
  void name_surroundings(const VocabData& data) {
    const NamedPretokenizer* named = rules.kind == VocabKind::kByteBpe ? find_pretokenizer(pre) : nullptr;
    const bool spm = rules.kind == VocabKind::kSpm, bert = rules.kind == VocabKind::kWordPiece;
    const auto put = [&](std::vector<TokenId>& to, const std::optional<bool>& said, bool otherwise, TokenId id) {
      if (said.value_or(otherwise) && id != kNoToken) to.push_back(id);
    };
    put(rules.before, data.add_bos, spm || bert || (named && named->add_bos) || pre == "gemma4", vocab.bos);
    put(rules.after, data.add_eos, rules.kind == VocabKind::kUnigram, vocab.eos);
    if (rules.after.empty()) put(rules.after, data.add_sep, bert || (named && named->add_sep), vocab.sep);
  }

  Status encode_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
    switch (rules.kind) {
      case VocabKind::kByteBpe:
      case VocabKind::kCharBpe: bpe.encode(piece, scratch, out); return {};
      case VocabKind::kSpm: return spm.encode(piece, scratch, out);
      case VocabKind::kUnigram: return unigram.encode(piece, scratch, out);
      case VocabKind::kWordPiece: word_piece.encode(piece, out); return {};
    }
    return {};
  }

  // SentencePiece BPE: spaces are escaped, one may be put before.
  Status encode_spm(std::string_view text, bool prefix, Scratch& scratch, std::vector<TokenId>& out) const {
    std::string& escaped = scratch.text;
    escaped.clear();
    escaped.reserve(text.size() + text.size() / 2 + kSpaceMark.size());
    if (prefix) escaped += kSpaceMark;
    for (const char c : text) {
      if (c == ' ')
        escaped += kSpaceMark;
      else
        escaped += c;
    }
    return spm.encode(escaped, scratch, out);
  }

  // Normalized text without special tokens.
  Status encode_plain(std::string_view text, bool at_start, Scratch& scratch, std::vector<TokenId>& out) const {
    if (text.empty()) return {};
    text = MINFER_TRY(cut_text(rules.steps, text, at_start, scratch));
    for (const Piece piece : scratch.pieces) {
      MINFER_TRY(encode_piece(text.substr(piece.begin, piece.end - piece.begin), scratch, out));
    }
    return {};
  }

  // A stretch between special tokens. `all`: control tokens are looked for in it.
  Status encode_stretch(std::string_view text, bool at_start, bool all, Scratch& scratch,
                        std::vector<TokenId>& out) const {
    text = MINFER_TRY(normalize(rules.normalize, text, scratch.normal, scratch.swap_text));
    if (normalized_specials.empty()) return encode_plain(text, at_start, scratch, out);
    std::vector<ByteRange> markup;
    if (all) markup.push_back({0, text.size()});
    size_t pos = 0;
    while (const auto match = normalized_specials.next(text, pos, markup)) {
      MINFER_TRY(encode_plain(text.substr(pos, match->begin - pos), at_start && pos == 0, scratch, out));
      out.push_back(match->id);
      pos = match->end;
    }
    return encode_plain(text.substr(pos), at_start && pos == 0, scratch, out);
  }

  // As encode_stretch for the part [begin, end) of `text`, of which `markup` says where control tokens may stand.
  Status encode_between(std::string_view text, size_t begin, size_t end, const std::vector<ByteRange>& markup,
                        Scratch& scratch, std::vector<TokenId>& out) const {
    if (normalized_specials.empty() || begin == end) {
      return encode_stretch(text.substr(begin, end - begin), begin == 0, false, scratch, out);
    }
    // Normalization moves bytes about, so markup and content are normalized one by one.
    for (size_t pos = begin; pos < end;) {
      const auto range =
          std::partition_point(markup.begin(), markup.end(), [&](const ByteRange& r) { return r.end <= pos; });
      const bool inside = range != markup.end() && range->begin <= pos;
      const size_t stop = range == markup.end() ? end : std::min(end, inside ? range->end : range->begin);
      MINFER_TRY(encode_stretch(text.substr(pos, stop - pos), pos == 0, inside, scratch, out));
      pos = stop;
    }
    return {};
  }

  Status encode_all(std::string_view text, const std::vector<ByteRange>& markup, Scratch& scratch,
                    std::vector<TokenId>& out) const {
    // The space prefix stands before the first text at the start and after a control token, as where SentencePiece
    // normalises each stretch between control tokens; user-defined tokens are part of such a stretch.
    bool prefix = rules.space_prefix;
    size_t pos = 0;
    while (const auto match = specials.next(text, pos, markup)) {
      const bool control = vocab.type(match->id) != TokenType::kUserDefined;
      const bool empty = match->begin == pos;
      if (rules.kind != VocabKind::kSpm) {
        MINFER_TRY(encode_between(text, pos, match->begin, markup, scratch, out));
      } else if (!empty || (prefix && !control)) {
        MINFER_TRY(encode_spm(text.substr(pos, match->begin - pos), prefix, scratch, out));
      }
      out.push_back(match->id);
      prefix = control && rules.space_prefix;
      pos = match->end;
    }
    if (rules.kind != VocabKind::kSpm) return encode_between(text, pos, text.size(), markup, scratch, out);
    return pos == text.size() ? Status() : encode_spm(text.substr(pos), prefix, scratch, out);
  }

  Result<std::vector<TokenId>> encode(std::string_view text, const std::vector<ByteRange>& markup,
                                      bool add_special) const {
    if (text.size() > kMaxTextBytes) {
      return make_error(ErrorCode::kInvalidArgument, "[tokenizer] text: found {} bytes, expected at most {}",
                        text.size(), kMaxTextBytes);
    }
    std::vector<TokenId> ids;
    ids.reserve(text.size() / 3 + 8);  // a token has some 4 bytes of English
    if (add_special) ids.insert(ids.end(), rules.before.begin(), rules.before.end());
    auto scratch = take_scratch();
    const Status done = encode_all(text, markup, *scratch, ids);
    give_back(std::move(scratch));
    if (!done.ok()) return Error(done.error());
    if (add_special) ids.insert(ids.end(), rules.after.begin(), rules.after.end());
    return ids;
  }
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::create(const VocabData& data) {
  auto impl = std::make_unique<Impl>();
  impl->model = data.model;
  impl->rules = data.rules ? *data.rules : MINFER_TRY(rules_for_gguf(data));
  if (!data.rules && data.model == "gpt2") impl->pre = data.pre.empty() ? "default" : data.pre;
  if (data.model == "gemma4") impl->pre = "gemma4";
  MINFER_TRY(impl->build(data));
  return Tokenizer(std::move(impl));
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::vector<ByteRange> markup;
  if (options.parse_special) markup.push_back({0, text.size()});
  return impl_->encode(text, markup, options.add_special);
}

Result<std::vector<TokenId>> Tokenizer::encode_segments(std::span<const TextSegment> segments, bool add_special) const {
  std::string text;
  std::vector<ByteRange> markup;
  for (const TextSegment& s : segments) {
    const size_t begin = text.size();
    text += s.text;
    if (!s.is_markup || s.text.empty()) continue;
    if (!markup.empty() && markup.back().end == begin)
      markup.back().end = text.size();
    else
      markup.push_back({begin, text.size()});
  }
  return impl_->encode(text, markup, add_special);
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids, DecodeOptions options) const {
  std::string out;
  out.reserve(ids.size() * 4);
  bool strip = options.strip_space_prefix && impl_->rules.strip_first;
  for (const TokenId id : ids) {
    if (!valid(id)) {
      return make_error(ErrorCode::kOutOfRange, "[tokenizer] token id: found {}, expected 0 to {}", id, n_vocab() - 1);
    }
    if (is_control(id) && !options.show_control) continue;
    std::string_view bytes = piece(id);
    if (strip && !bytes.empty()) {
      strip = false;
      const bool spaced =
          !is_control(id) || impl_->rules.kind == VocabKind::kWordPiece || impl_->rules.join_with_spaces;
      if (spaced && bytes.front() == ' ') bytes.remove_prefix(1);
    }
    out += bytes;
  }
  return out;
}

size_t Tokenizer::n_vocab() const { return impl_->vocab.size(); }
bool Tokenizer::valid(TokenId id) const { return id >= 0 && static_cast<size_t>(id) < impl_->vocab.size(); }

std::string_view Tokenizer::piece(TokenId id) const {
  MINFER_DCHECK(valid(id));
  return impl_->vocab.piece(id);
}
std::string_view Tokenizer::text(TokenId id) const {
  MINFER_DCHECK(valid(id));
  return impl_->vocab.text(id);
}
TokenType Tokenizer::type(TokenId id) const {
  MINFER_DCHECK(valid(id));
  return impl_->vocab.type(id);
}
bool Tokenizer::is_control(TokenId id) const {
  const TokenType t = type(id);
  return t == TokenType::kControl || t == TokenType::kUnknown;
}

std::optional<TokenId> Tokenizer::find(std::string_view text) const {
  const TokenId id = impl_->vocab.find(text);
  if (id == kNoToken) return std::nullopt;
  return id;
}

TokenId Tokenizer::bos() const { return impl_->vocab.bos; }
TokenId Tokenizer::eos() const { return impl_->vocab.eos; }
TokenId Tokenizer::eot() const { return impl_->vocab.eot; }
TokenId Tokenizer::unk() const { return impl_->vocab.unk; }
TokenId Tokenizer::sep() const { return impl_->vocab.sep; }
TokenId Tokenizer::pad() const { return impl_->vocab.pad; }
TokenId Tokenizer::mask() const { return impl_->vocab.mask; }
const FimTokens& Tokenizer::fim() const { return impl_->vocab.fim; }
bool Tokenizer::add_bos() const {
  const auto& before = impl_->rules.before;
  return bos() != kNoToken && std::find(before.begin(), before.end(), bos()) != before.end();
}
bool Tokenizer::add_eos() const {
  const auto& after = impl_->rules.after;
  return eos() != kNoToken && std::find(after.begin(), after.end(), eos()) != after.end();
}
bool Tokenizer::add_space_prefix() const { return impl_->rules.strip_first; }

bool Tokenizer::is_eog(TokenId id) const { return std::binary_search(eog().begin(), eog().end(), id); }
std::span<const TokenId> Tokenizer::eog() const { return impl_->vocab.eog; }
const std::string& Tokenizer::model() const { return impl_->model; }
const std::string& Tokenizer::pre() const { return impl_->pre; }

}  // namespace minfer
