// See vocabulary.h.
#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "base/error.h"
#include "tokenizer/unicode.h"

namespace minfer {
namespace {

// Special texts longer than this are refused: the longest in use has about 60 bytes, and the search for them at every
// position of a prompt must stay cheap.
constexpr size_t kMaxSpecialBytes = 256;

struct ByteSymbols {
  char text[256][2];
  uint8_t bytes[256];
  int16_t byte_of[0x144];  // code point -> byte, or -1

  ByteSymbols() {
    std::fill(std::begin(byte_of), std::end(byte_of), int16_t{-1});
    uint32_t next = 0x100;
    for (uint32_t b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      const uint32_t cp = printable ? b : next++;
      byte_of[cp] = static_cast<int16_t>(b);
      std::string utf8;
      append_utf8(utf8, cp);
      std::memcpy(text[b], utf8.data(), utf8.size());
      bytes[b] = static_cast<uint8_t>(utf8.size());
    }
  }
};

const ByteSymbols& byte_symbols() {
  static const ByteSymbols symbols;
  return symbols;
}

// Writes the bytes a byte-level token stands for to `out` (room for text.size()) and returns their number. A text with
// a character that stands for no byte means itself.
size_t write_byte_level(std::string_view text, char* out) {
  const ByteSymbols& symbols = byte_symbols();
  size_t n = 0;
  for (size_t pos = 0; pos < text.size();) {
    const CodePoint c = read_code_point(text, pos);
    const int byte = c.valid && c.value < 0x144 ? symbols.byte_of[c.value] : -1;
    if (byte < 0) {
      std::memcpy(out, text.data(), text.size());
      return text.size();
    }
    out[n++] = static_cast<char>(byte);
    pos += c.bytes;
  }
  return n;
}

// The same for SentencePiece: U+2581 is a space.
size_t write_spaces(std::string_view text, char* out) {
  size_t n = 0;
  for (size_t pos = 0; pos < text.size();) {
    if (text.substr(pos, kSpaceMark.size()) == kSpaceMark) {
      out[n++] = ' ';
      pos += kSpaceMark.size();
    } else {
      out[n++] = text[pos++];
    }
  }
  return n;
}

// "<0x0A>" -> 10; -1 if it is not exactly of that form.
int parse_byte_text(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return -1;
  int value = 0;
  for (const char c : text.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

// A few bytes of a token for a message, nothing that could disturb a terminal.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 40)) {
    const auto b = static_cast<unsigned char>(c);
    if (b >= 0x20 && b < 0x7f)
      out += c;
    else
      out += fmt::format("\\x{:02x}", b);
  }
  return text.size() > 40 ? out + "..." : out;
}

Status check_id(const char* key, TokenId id, size_t n_vocab) {
  if (id == kNoToken || (id >= 0 && static_cast<size_t>(id) < n_vocab)) return {};
  return make_error(ErrorCode::kOutOfRange, "[tokenizer] {}: found {}, expected 0 to {} (the vocabulary has {} tokens)",
                    key, id, n_vocab - 1, n_vocab);
}

Status check_arrays(const VocabData& data, bool scored) {
  const size_t n = data.tokens.size();
  if (n == 0) return make_error(ErrorCode::kCorrupt, "[tokenizer] tokens: found 0, expected at least 1");
  if (n > static_cast<size_t>(INT32_MAX - 1)) {
    return make_error(ErrorCode::kUnsupported, "[tokenizer] tokens: found {}, expected fewer than 2^31", n);
  }
  if (!data.types.empty() && data.types.size() != n) {
    return make_error(ErrorCode::kCorrupt, "[tokenizer] token_type: found {} entries, expected {} (one per token)",
                      data.types.size(), n);
  }
  for (size_t i = 0; i < data.types.size(); ++i) {
    if (data.types[i] < 1 || data.types[i] > 6) {
      return make_error(ErrorCode::kCorrupt, "[tokenizer] token_type[{}]: found {}, expected 1 to 6", i, data.types[i]);
    }
  }
  const size_t n_scores = std::max(data.scores.size(), data.exact_scores.size());
  if (n_scores != 0 && n_scores != n) {
    return make_error(ErrorCode::kCorrupt, "[tokenizer] scores: found {} entries, expected {} (one per token)",
                      n_scores, n);
  }
  for (size_t i = 0; scored && i < n_scores; ++i) {
    if (std::isnan(data.exact_scores.empty() ? static_cast<double>(data.scores[i]) : data.exact_scores[i])) {
      return make_error(ErrorCode::kCorrupt, "[tokenizer] scores[{}]: found NaN, expected a number", i);
    }
  }
  return {};
}

Status check_ids(const VocabData& data) {
  const std::pair<const char*, TokenId> ids[] = {{"bos_token_id", data.bos},
                                                 {"eos_token_id", data.eos},
                                                 {"eot_token_id", data.eot},
                                                 {"unknown_token_id", data.unk},
                                                 {"seperator_token_id", data.sep},
                                                 {"padding_token_id", data.pad},
                                                 {"mask_token_id", data.mask},
                                                 {"fim_pre_token_id", data.fim.prefix},
                                                 {"fim_suf_token_id", data.fim.suffix},
                                                 {"fim_mid_token_id", data.fim.middle},
                                                 {"fim_pad_token_id", data.fim.pad},
                                                 {"fim_rep_token_id", data.fim.repo},
                                                 {"fim_sep_token_id", data.fim.file}};
  const size_t n = data.tokens.size();
  for (const auto& [key, id] : ids) MINFER_TRY(check_id(key, id, n));
  for (const TokenId id : data.more_eog) MINFER_TRY(check_id("end of generation token", id, n));
  for (const AddedToken& t : data.added) MINFER_TRY(check_id("added token", t.id, n));
  return {};
}

// What a WordPiece token adds to decoded text: a space before it unless it continues a word. With `cleanup`, Hugging
// Face's tidying of signs and English contractions (each token alone).
std::string word_piece_text(std::string_view text, const TextRules& rules, bool special) {
  if (!special) {
    if (rules.continuing.empty() && text.substr(0, kSpaceMark.size()) != kSpaceMark) return std::string(text);
    if (rules.continuing.empty()) text.remove_prefix(kSpaceMark.size());
    if (!rules.continuing.empty() && text.substr(0, rules.continuing.size()) == rules.continuing) {
      return std::string(text.substr(rules.continuing.size()));
    }
  }
  std::string out = " " + std::string(text);
  if (!rules.cleanup) return out;
  static constexpr std::pair<std::string_view, std::string_view> kTidy[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kTidy) {
    for (size_t at = out.find(from); at != std::string::npos; at = out.find(from, at + to.size())) {
      out.replace(at, from.size(), to);
    }
  }
  return out;
}

}  // namespace

uint64_t hash_seed() {
  static const uint64_t seed = [] {
    std::random_device device;
    return (static_cast<uint64_t>(device()) << 32 | device()) | 1;
  }();
  return seed;
}

bool is_special(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUserDefined || type == TokenType::kUnknown;
}

std::optional<std::string> byte_level_bytes(std::string_view text) {
  const ByteSymbols& symbols = byte_symbols();
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    const CodePoint c = read_code_point(text, pos);
    const int byte = c.valid && c.value < 0x144 ? symbols.byte_of[c.value] : -1;
    if (byte < 0) return std::nullopt;
    out += static_cast<char>(byte);
    pos += c.bytes;
  }
  return out;
}

std::string_view byte_symbol(unsigned char byte) {
  const ByteSymbols& s = byte_symbols();
  return {s.text[byte], s.bytes[byte]};
}

Result<Vocabulary> Vocabulary::make(const VocabData& data, const TextRules& rules) {
  const VocabKind kind = rules.kind;
  const bool scored = kind == VocabKind::kSpm || kind == VocabKind::kUnigram;
  MINFER_TRY(check_arrays(data, scored));
  MINFER_TRY(check_ids(data));
  const size_t n = data.tokens.size();
  Vocabulary v;
  v.kind = kind;
  v.types.assign(n, TokenType::kNormal);
  for (size_t i = 0; i < data.types.size(); ++i) v.types[i] = static_cast<TokenType>(data.types[i]);
  if (scored) {
    // A file without scores ranks all merges alike: the leftmost pair first.
    v.scores.assign(n, 0.0);
    std::copy(data.scores.begin(), data.scores.end(), v.scores.begin());
    std::copy(data.exact_scores.begin(), data.exact_scores.end(), v.scores.begin());
  }

  // Texts, then pieces (longer by a space at most), in one arena.
  size_t text_bytes = 0;
  for (const auto& t : data.tokens) text_bytes += t.size();
  v.arena_ = std::make_unique_for_overwrite<char[]>(text_bytes * 2 + n + 1);
  v.texts.resize(n);
  char* out = v.arena_.get();
  for (size_t i = 0; i < n; ++i) {
    const std::string_view t = data.tokens[i];
    if (!t.empty()) std::memcpy(out, t.data(), t.size());
    v.texts[i] = {out, t.size()};
    out += t.size();
  }
  v.index.reserve(n);
  for (size_t i = 0; i < n; ++i) {
    // Of two tokens of one text the first is the one that encoding gives; both decode.
    if (!v.texts[i].empty()) v.index.insert(v.texts[i], static_cast<TokenId>(i), v.texts);
  }
  for (const AddedToken& t : data.added) {
    if (!t.outside || t.id == kNoToken) continue;
    v.outside.resize(n);
    v.outside[static_cast<size_t>(t.id)] = true;
  }
  v.name_specials(data);
  MINFER_TRY(v.make_pieces(rules, out));
  if (kind == VocabKind::kByteBpe) {
    // Files name a control token (an end of text, often) as the unknown one: no text may become that.
    const bool unknown = v.unk != kNoToken && v.type(v.unk) == TokenType::kUnknown;
    for (int b = 0; b < 256; ++b) {
      TokenId id = v.find(byte_symbol(static_cast<unsigned char>(b)));
      if (id != kNoToken && v.type(id) == TokenType::kControl) id = kNoToken;
      v.byte_tokens[static_cast<size_t>(b)] = id == kNoToken && unknown ? v.unk : id;
    }
  }
  return v;
}

Status Vocabulary::make_pieces(const TextRules& rules, char* out) {
  pieces.resize(size());
  byte_tokens.fill(kNoToken);
  for (size_t i = 0; i < size(); ++i) {
    const std::string_view t = texts[i];
    const TokenType type = types[i];
    size_t bytes = t.size();
    if (is_special(type) && t.size() > kMaxSpecialBytes) {
      return make_error(ErrorCode::kUnsupported,
                        "[tokenizer] token {} '{}': a special token of {} bytes, expected at most {}", i, shown(t),
                        t.size(), kMaxSpecialBytes);
    }
    if (!rules.join_with_spaces && kind == VocabKind::kByteBpe &&
        (type == TokenType::kNormal || type == TokenType::kUnused)) {
      bytes = write_byte_level(t, out);
    } else if (kind != VocabKind::kByteBpe && type == TokenType::kByte) {
      const int byte = parse_byte_text(t);
      if (byte < 0) {
        return make_error(ErrorCode::kCorrupt,
                          "[tokenizer] token {} '{}': a BYTE token's text is not of the form <0x0A>", i, shown(t));
      }
      *out = static_cast<char>(byte);
      bytes = 1;
      TokenId& slot = byte_tokens[static_cast<size_t>(byte)];
      if (slot == kNoToken) slot = static_cast<TokenId>(i);
    } else if (rules.join_with_spaces) {
      *out = ' ';
      if (!t.empty()) std::memcpy(out + 1, t.data(), t.size());
      bytes = t.size() + 1;
    } else if (kind == VocabKind::kWordPiece) {
      const std::string piece = word_piece_text(t, rules, is_special(type));
      std::memcpy(out, piece.data(), piece.size());
      bytes = piece.size();
    } else if (rules.marks_spaces && type != TokenType::kControl && type != TokenType::kUnknown) {
      bytes = write_spaces(t, out);
    } else if (!t.empty()) {
      std::memcpy(out, t.data(), t.size());
    }
    pieces[i] = {out, bytes};
    out += bytes;
  }
  return {};
}

}  // namespace minfer
