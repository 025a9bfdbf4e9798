// See cases.h.
#include "tokenizer/testing/cases.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tokenizer/vocab_from_gguf.h"

namespace minfer::testing {

std::string cases_dir() {
  const char* dir = std::getenv("MINFER_CASES");
  return dir && *dir ? dir : MINFER_SOURCE_DIR "/../shared/cases";
}

bool file_exists(const std::string& path) { return std::ifstream(path).good(); }

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string read_xz(const std::string& path) {
  std::string out;
  FILE* pipe = popen(("xz -dc '" + path + "' 2>/dev/null").c_str(), "r");
  if (!pipe) return out;
  char buffer[1 << 16];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
  pclose(pipe);
  return out;
}

std::vector<VectorCase> read_vectors(const std::string& path) {
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  const std::string texts = read_file(path + ".inp");
  std::istringstream lines(read_file(path + ".out"));
  std::vector<VectorCase> cases;
  for (size_t pos = 0; pos <= texts.size();) {
    const size_t end = std::min(texts.find(kSeparator, pos), texts.size());
    VectorCase c{texts.substr(pos, end - pos), {}};
    std::string line;
    std::getline(lines, line);
    std::istringstream ids(line);
    c.ids.assign(std::istream_iterator<TokenId>(ids), {});
    cases.push_back(std::move(c));
    pos = end + kSeparator.size();
  }
  return cases;
}

std::vector<uint8_t> base64_bytes(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<uint8_t> out;
  uint32_t bits = 0;
  int n = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(kDigits.find(c));
    n += 6;
    if (n >= 8) out.push_back(static_cast<uint8_t>(bits >> (n -= 8)));
  }
  return out;
}

Result<Tokenizer> load_gguf_tokenizer(const std::string& path) {
  auto file = gguf::File::open(path);
  if (!file.ok()) return std::move(file).error();
  return tokenizer_from_gguf(file->metadata());
}

void OwnedVocab::link(size_t n_tokens) {
  data.tokens.assign(strings.begin(), strings.begin() + static_cast<ptrdiff_t>(n_tokens));
  data.merges.assign(strings.begin() + static_cast<ptrdiff_t>(n_tokens), strings.end());
}

namespace {

// One field of a protocol buffer message: its number and, by wire type, its value or bytes.
struct Field {
  uint64_t number = 0, value = 0;
  std::string_view bytes;
};

uint64_t read_varint(std::string_view& in) {
  uint64_t v = 0;
  for (int shift = 0; !in.empty(); shift += 7) {
    const auto b = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    v |= static_cast<uint64_t>(b & 0x7f) << shift;
    if (!(b & 0x80)) break;
  }
  return v;
}

Field read_field(std::string_view& in) {
  const uint64_t tag = read_varint(in);
  Field f{.number = tag >> 3, .value = 0, .bytes = {}};
  if ((tag & 7) == 0) {
    f.value = read_varint(in);
  } else {
    const size_t n = (tag & 7) == 2 ? read_varint(in) : (tag & 7) == 5 ? 4 : 8;
    f.bytes = in.substr(0, n);
    in.remove_prefix(std::min(n, in.size()));
  }
  return f;
}

}  // namespace

OwnedVocab vocab_from_spm_model(std::string_view bytes) {
  OwnedVocab v;
  v.data.model = "t5";
  v.data.add_space_prefix = v.data.remove_extra_whitespaces = true;
  while (!bytes.empty()) {
    Field message = read_field(bytes);
    std::string text;
    float score = 0;
    int32_t type = 1;
    while (message.number <= 3 && !message.bytes.empty()) {
      const Field f = read_field(message.bytes);
      if (message.number == 1) {  // a piece
        if (f.number == 1) text = f.bytes;
        if (f.number == 2) std::memcpy(&score, f.bytes.data(), 4);
        if (f.number == 3) type = static_cast<int32_t>(f.value);
      } else if (message.number == 2) {  // the trainer's settings
        if (f.number == 3 && f.value == 2) v.data.model = "llama";
      } else {  // the normalizer's
        if (f.number == 2) v.data.charsmap.assign(f.bytes.begin(), f.bytes.end());
        if (f.number == 3) v.data.add_space_prefix = f.value != 0;
        if (f.number == 4) v.data.remove_extra_whitespaces = f.value != 0;
      }
    }
    if (message.number != 1) continue;
    v.strings.push_back(text);
    v.data.scores.push_back(score);
    v.data.types.push_back(type);
  }
  v.data.add_bos = v.data.add_eos = false;
  v.link(v.strings.size());
  return v;
}

}  // namespace minfer::testing
