// See cases.h.
#include "tokenizer/testing/cases.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unordered_map>

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

Result<Tokenizer> load_gguf_tokenizer(const std::string& path) {
  auto file = gguf::File::open(path);
  if (!file.ok()) return std::move(file).error();
  return tokenizer_from_gguf(file->metadata());
}

void OwnedVocab::link(size_t n_tokens) {
  data.tokens.assign(strings.begin(), strings.begin() + static_cast<ptrdiff_t>(n_tokens));
  data.merges.assign(strings.begin() + static_cast<ptrdiff_t>(n_tokens), strings.end());
}

OwnedVocab vocab_from_hf_json(std::string_view json, std::string pre) {
  const auto root = nlohmann::json::parse(json);
  const auto& model = root["model"];
  OwnedVocab v;
  v.data.model = pre.empty() ? "llama" : "gpt2";
  v.data.pre = pre;
  size_t n = model["vocab"].size();
  for (const auto& a : root["added_tokens"]) n = std::max(n, a["id"].get<size_t>() + 1);
  for (const auto& [text, id] : model["vocab"].items()) n = std::max(n, id.get<size_t>() + 1);
  v.strings.assign(n, "");
  v.data.types.assign(n, static_cast<int32_t>(TokenType::kNormal));
  for (const auto& [text, id] : model["vocab"].items()) {
    v.strings[id] = text;
    if (pre.empty() && text.size() == 6 && text.starts_with("<0x"))
      v.data.types[id] = static_cast<int32_t>(TokenType::kByte);
  }
  for (const auto& a : root["added_tokens"]) {
    const size_t id = a["id"];
    v.strings[id] = a["content"];
    v.data.types[id] = static_cast<int32_t>(a["special"].get<bool>() ? TokenType::kControl : TokenType::kUserDefined);
    if (v.strings[id] == "<unk>") v.data.types[id] = static_cast<int32_t>(TokenType::kUnknown);
  }
  std::unordered_map<std::string, TokenId> index;
  for (size_t i = 0; i < n; ++i) index.emplace(v.strings[i], static_cast<TokenId>(i));
  if (pre.empty()) v.data.scores.assign(n, -1e9f);
  float rank = 0;
  for (const auto& m : model["merges"]) {
    std::string line = m.is_string() ? m.get<std::string>() : m[0].get<std::string>() + " " + m[1].get<std::string>();
    if (!pre.empty()) {
      v.strings.push_back(std::move(line));
      continue;
    }
    const std::string joined =
        m.is_string() ? line.erase(line.find(' ', 1), 1) : m[0].get<std::string>() + m[1].get<std::string>();
    float& score = v.data.scores[static_cast<size_t>(index.at(joined))];
    score = std::max(score, -rank);
    rank += 1;
  }
  v.data.add_bos = false;
  v.link(n);
  return v;
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
  v.data.model = "llama";
  while (!bytes.empty()) {
    Field piece = read_field(bytes);
    if (piece.number != 1) continue;
    std::string text;
    float score = 0;
    int32_t type = 1;
    while (!piece.bytes.empty()) {
      const Field f = read_field(piece.bytes);
      if (f.number == 1) text = f.bytes;
      if (f.number == 2) std::memcpy(&score, f.bytes.data(), 4);
      if (f.number == 3) type = static_cast<int32_t>(f.value);
    }
    v.strings.push_back(text);
    v.data.scores.push_back(score);
    v.data.types.push_back(type);
  }
  v.data.add_bos = false;
  v.link(v.strings.size());
  return v;
}

}  // namespace minfer::testing
