// See tokenizer.h. Encoding: control and user-defined tokens are cut out first; each stretch between them is
// normalised, cut into pieces and merged.
#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "tokenizer/bpe.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/special_matcher.h"
#include "tokenizer/spm.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocabulary.h"

namespace minfer {
namespace {

constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581

// Offsets within a text are 32 bits wide; escaping a space triples it.
constexpr size_t kMaxTextBytes = size_t{1} << 30;

size_t skip_spaces(std::string_view text, size_t pos) {
  const uint8_t* classes = char_classes();
  while (pos < text.size()) {
    const CodePoint c = read_code_point(text, pos);
    if (!c.valid || !(classes[c.value] & kSpace)) break;
    pos += c.bytes;
  }
  return pos;
}

}  // namespace

struct Tokenizer::Impl {
  std::string model, pre;
  Vocabulary vocab;
  SpecialMatcher specials;
  const Pretokenizer* pretokenizer = nullptr;  // kByteBpe
  ByteBpe bpe;                                 // kByteBpe
  SpmBpe spm;                                  // kSpm

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

  void encode_bpe(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const {
    if (pretokenizer->nfc && !surely_nfc(text)) {
      scratch.text = to_nfc(text);
      text = scratch.text;
    }
    if (text.empty()) return;
    pretokenize(*pretokenizer, text, scratch.ends, scratch.swap);
    uint32_t begin = 0;
    for (const uint32_t end : scratch.ends) {
      bpe.encode(text.substr(begin, end - begin), scratch, out);
      begin = end;
    }
  }

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

  // A stretch without special tokens.
  Status encode_plain(std::string_view text, bool prefix, Scratch& scratch, std::vector<TokenId>& out) const {
    if (text.empty() && !prefix) return {};
    if (vocab.kind == VocabKind::kSpm) return encode_spm(text, prefix, scratch, out);
    encode_bpe(text, scratch, out);
    return {};
  }

  Status encode_all(std::string_view text, const std::vector<ByteRange>& markup, Scratch& scratch,
                    std::vector<TokenId>& out) const {
    // The space prefix stands before the first text at the start and after a control token, as where SentencePiece
    // normalises each stretch between control tokens; user-defined tokens are part of such a stretch.
    bool prefix = vocab.add_space_prefix;
    size_t pos = 0;
    while (const auto match = specials.next(text, pos, markup)) {
      const std::string_view plain = text.substr(pos, match->begin - pos);
      const bool control = vocab.type(match->id) != TokenType::kUserDefined;
      MINFER_TRY(encode_plain(plain, prefix && !(control && plain.empty()), scratch, out));
      out.push_back(match->id);
      prefix = control && vocab.add_space_prefix;
      pos = match->end;
      if (!vocab.rstrip.empty() && vocab.rstrip[static_cast<size_t>(match->id)]) pos = skip_spaces(text, pos);
    }
    const std::string_view plain = text.substr(pos);
    return encode_plain(plain, prefix && !plain.empty(), scratch, out);
  }

  Result<std::vector<TokenId>> encode(std::string_view text, const std::vector<ByteRange>& markup,
                                      bool add_special) const {
    if (text.size() > kMaxTextBytes) {
      return make_error(ErrorCode::kInvalidArgument, "[tokenizer] text: found {} bytes, expected at most {}",
                        text.size(), kMaxTextBytes);
    }
    std::vector<TokenId> ids;
    ids.reserve(text.size() / 3 + 8);  // a token has some 4 bytes of English
    if (add_special && vocab.add_bos) ids.push_back(vocab.bos);
    auto scratch = take_scratch();
    const Status done = encode_all(text, markup, *scratch, ids);
    give_back(std::move(scratch));
    if (!done.ok()) return Error(done.error());
    if (add_special && vocab.add_eos) ids.push_back(vocab.eos);
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
  if (data.model == "gpt2") {
    impl->pre = data.pre.empty() ? "default" : data.pre;
    impl->pretokenizer = find_pretokenizer(impl->pre);
    if (!impl->pretokenizer) {
      return make_error(ErrorCode::kUnsupported, "[tokenizer] pre-tokenizer '{}' is unknown; known: {}",
                        data.pre.substr(0, 80), pretokenizer_names());
    }
    if (data.merges.empty() && data.tokens.size() > 256) {
      return make_error(ErrorCode::kCorrupt,
                        "[tokenizer] merges: found none for {} tokens, expected those of byte-level BPE",
                        data.tokens.size());
    }
    impl->vocab = MINFER_TRY(Vocabulary::make(data, VocabKind::kByteBpe, impl->pretokenizer->add_bos));
    MINFER_TRY(impl->bpe.build(impl->vocab, data.merges, impl->pretokenizer->ignore_merges));
  } else if (data.model == "llama") {
    impl->vocab = MINFER_TRY(Vocabulary::make(data, VocabKind::kSpm, true));
    impl->spm.build(impl->vocab);
  } else {
    return make_error(ErrorCode::kUnsupported, "[tokenizer] model '{}' is unknown; known: gpt2, llama",
                      data.model.substr(0, 80));
  }
  MINFER_TRY(impl->specials.build(impl->vocab));
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
  bool strip = options.strip_space_prefix && add_space_prefix();
  for (const TokenId id : ids) {
    if (!valid(id)) {
      return make_error(ErrorCode::kOutOfRange, "[tokenizer] token id: found {}, expected 0 to {}", id, n_vocab() - 1);
    }
    if (is_control(id) && !options.show_control) continue;
    std::string_view bytes = piece(id);
    if (strip && !bytes.empty()) {
      strip = false;
      if (!is_control(id) && bytes.front() == ' ') bytes.remove_prefix(1);
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
TokenId Tokenizer::pad() const { return impl_->vocab.pad; }
bool Tokenizer::add_bos() const { return impl_->vocab.add_bos; }
bool Tokenizer::add_eos() const { return impl_->vocab.add_eos; }
bool Tokenizer::add_space_prefix() const { return impl_->vocab.add_space_prefix; }

bool Tokenizer::is_eog(TokenId id) const { return std::binary_search(eog().begin(), eog().end(), id); }
std::span<const TokenId> Tokenizer::eog() const { return impl_->vocab.eog; }
const std::string& Tokenizer::model() const { return impl_->model; }
const std::string& Tokenizer::pre() const { return impl_->pre; }

}  // namespace minfer
