// Measures a tokenizer on a text: how long the vocabulary takes to load and the text to encode, on one thread.
//   bench_tokenizer VOCABULARY TEXTS [ROUNDS]     VOCABULARY: a GGUF file or a tokenizer.json; TEXTS: ended by NULs
// Prints one JSON line: {"load_ms": [...], "encode_ms": [...], "bytes": n, "tokens": n, "ids_hash": "..."}.
// bench/tokenizer_speed.py compares it with Hugging Face's tokenizers.
// Layers: tokenizer
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>

#include "gguf/reader.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/vocab_from_gguf.h"

namespace {

using namespace minfer;

double ms_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Result<Tokenizer> load(const std::string& path) {
  if (path.ends_with(".json")) return tokenizer_from_json(read(path));
  auto file = gguf::File::open(path);
  if (!file.ok()) return std::move(file).error();
  return tokenizer_from_gguf(file->metadata());
}

template <typename T>
T must(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}

void print_list(const char* name, const std::vector<double>& values) {
  std::printf("\"%s\": [", name);
  for (size_t i = 0; i < values.size(); ++i) std::printf("%s%.3f", i ? ", " : "", values[i]);
  std::printf("], ");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_tokenizer VOCABULARY TEXT [ROUNDS]\n");
    return 2;
  }
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 3;
  const std::string text = read(argv[2]);
  std::vector<double> load_ms, encode_ms;
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a over the ids
  size_t tokens = 0;
  for (int r = 0; r < rounds; ++r) {
    std::optional<Tokenizer> t;
    load_ms.push_back(ms_of([&] { t.emplace(must(load(argv[1]))); }));
    std::vector<std::vector<TokenId>> ids;
    encode_ms.push_back(ms_of([&] {
      for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\0', begin), text.size());
        const std::string_view one = std::string_view(text).substr(begin, end - begin);
        ids.push_back(must(t->encode(one, {.add_special = false, .parse_special = true})));
        begin = end + 1;
      }
    }));
    tokens = 0;
    hash = 0xcbf29ce484222325u;
    for (const auto& one : ids) {
      tokens += one.size();
      for (const TokenId id : one) hash = (hash ^ static_cast<uint32_t>(id)) * 0x100000001b3u;
    }
  }
  std::printf("{");
  print_list("load_ms", load_ms);
  print_list("encode_ms", encode_ms);
  std::printf("\"bytes\": %zu, \"tokens\": %zu, \"ids_hash\": \"%016llx\"}\n", text.size(), tokens,
              static_cast<unsigned long long>(hash));
  return 0;
}
