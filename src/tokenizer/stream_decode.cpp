// See stream_decode.h.
#include "tokenizer/stream_decode.h"

#include <utility>

#include "base/error.h"
#include "tokenizer/unicode.h"

namespace minfer {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// The unit at bytes[0] by the "maximal subpart" rule of Unicode 3.9 (D93b), which Python follows.
// Requires: bytes is not empty.
struct Part {
  size_t bytes;
  bool valid;     // a whole character
  bool complete;  // false: more bytes could still make it a character
};

Part first_part(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned b0 = at(0);
  if (b0 < 0x80) return {1, true, true};
  size_t want = 0;
  unsigned low = 0x80, high = 0xbf;  // bounds of the second byte (Unicode table 3-7)
  if (b0 >= 0xc2 && b0 <= 0xdf) {
    want = 2;
  } else if (b0 >= 0xe0 && b0 <= 0xef) {
    want = 3;
    if (b0 == 0xe0) low = 0xa0;
    if (b0 == 0xed) high = 0x9f;
  } else if (b0 >= 0xf0 && b0 <= 0xf4) {
    want = 4;
    if (b0 == 0xf0) low = 0x90;
    if (b0 == 0xf4) high = 0x8f;
  } else {
    return {1, false, true};
  }
  for (size_t i = 1; i < want; ++i) {
    if (i == bytes.size()) return {i, false, false};
    if (at(i) < low || at(i) > high) return {i, false, true};
    low = 0x80, high = 0xbf;
  }
  return {want, true, true};
}

}  // namespace

void utf8_take_settled(std::string& bytes, std::string& out) {
  size_t pos = 0;
  while (pos < bytes.size()) {
    const std::string_view rest = std::string_view(bytes).substr(pos);
    const Part part = first_part(rest);
    if (!part.complete) break;
    out += part.valid ? rest.substr(0, part.bytes) : kReplacement;
    pos += part.bytes;
  }
  bytes.erase(0, pos);
}

std::string utf8_replace(std::string_view bytes) {
  std::string rest(bytes), out;
  utf8_take_settled(rest, out);
  if (!rest.empty()) out += kReplacement;
  return out;
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, DecodeOptions options)
    : tokenizer_(&tokenizer), options_(options) {
  at_start_ = options.strip_space_prefix && tokenizer.add_space_prefix();
}

Result<std::string> StreamDecoder::push(TokenId id) {
  DecodeOptions options = options_;
  options.strip_space_prefix = at_start_;
  const std::string bytes = MINFER_TRY(tokenizer_->decode({&id, 1}, options));
  // The prefix has been seen once a token has shown anything or was nothing but the prefix.
  if (options_.show_control || !tokenizer_->is_control(id)) at_start_ = at_start_ && tokenizer_->piece(id).empty();
  held_ += bytes;
  std::string out;
  utf8_take_settled(held_, out);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out = std::exchange(held_, {}).empty() ? std::string() : std::string(kReplacement);
  at_start_ = options_.strip_space_prefix && tokenizer_->add_space_prefix();
  return out;
}

}  // namespace minfer
