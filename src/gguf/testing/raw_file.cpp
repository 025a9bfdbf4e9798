// Encoding of RawFile, and the base model.
#include "gguf/testing/raw_file.h"

#include "gguf/encode_bytes.h"
#include "gguf/writer.h"

namespace minfer::gguf::testing {
namespace {

const std::vector<std::string> kTokens = {"<s>", "</s>", "a", "b"};

std::vector<std::byte> ramp(size_t n) {
  std::vector<std::byte> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<std::byte>(i * 7 % 120);
  return v;
}

void pad(std::vector<std::byte>& v, uint64_t alignment) {
  while (alignment != 0 && v.size() % alignment != 0) v.push_back(std::byte{0});
}

}  // namespace

std::vector<std::byte> u32_bytes(uint32_t v) {
  std::vector<std::byte> out;
  put(out, v);
  return out;
}

std::vector<std::byte> string_bytes(std::string_view s, std::optional<uint64_t> length) {
  std::vector<std::byte> out;
  put<uint64_t>(out, length.value_or(s.size()));
  put_bytes(out, s.data(), s.size());
  return out;
}

std::vector<std::byte> array_bytes(uint32_t type, uint64_t count, const std::vector<std::byte>& elements) {
  std::vector<std::byte> out;
  put(out, type);
  put(out, count);
  put_bytes(out, elements.data(), elements.size());
  return out;
}

std::vector<std::byte> RawFile::encode() const {
  std::vector<std::byte> out;
  put(out, magic);
  put(out, version);
  put<uint64_t>(out, n_tensors.value_or(tensors.size()));
  put<uint64_t>(out, n_keys.value_or(keys.size()));
  for (const RawKey& k : keys) {
    put<uint64_t>(out, k.name_bytes.value_or(k.name.size()));
    put_bytes(out, k.name.data(), k.name.size());
    put(out, k.type);
    put_bytes(out, k.value.data(), k.value.size());
  }
  for (const RawTensor& t : tensors) {
    put<uint64_t>(out, t.name_bytes.value_or(t.name.size()));
    put_bytes(out, t.name.data(), t.name.size());
    put<uint32_t>(out, t.n_dims.value_or(static_cast<uint32_t>(t.dims.size())));
    for (const uint64_t d : t.dims) put(out, d);
    put(out, t.type);
    put(out, t.offset);
  }
  pad(out, alignment);
  put_bytes(out, data.data(), data.size());
  if (cut_to) out.resize(*cut_to);
  return out;
}

RawKey& RawFile::key(const std::string& name) {
  for (RawKey& k : keys) {
    if (k.name == name) return k;
  }
  MINFER_CHECK(false && "no such key in the base file");
  return keys.front();
}

RawTensor& RawFile::tensor(const std::string& name) {
  for (RawTensor& t : tensors) {
    if (t.name == name) return t;
  }
  MINFER_CHECK(false && "no such tensor in the base file");
  return tensors.front();
}

RawFile base_file() {
  RawFile f;
  std::vector<std::byte> tokens, scores, types;
  for (const std::string& t : kTokens) put_bytes(tokens, string_bytes(t).data(), string_bytes(t).size());
  for (int i = 0; i < 4; ++i) put(scores, -static_cast<float>(i)), put<int32_t>(types, i < 2 ? 3 : 1);
  f.keys = {
      {"general.architecture", 8, string_bytes("llama"), {}},
      {"general.name", 8, string_bytes("base"), {}},
      {"llama.block_count", 4, u32_bytes(2), {}},
      {"tokenizer.ggml.tokens", 9, array_bytes(8, 4, tokens), {}},
      {"tokenizer.ggml.scores", 9, array_bytes(6, 4, scores), {}},
      {"tokenizer.ggml.token_type", 9, array_bytes(5, 4, types), {}},
      {"tokenizer.ggml.add_bos_token", 7, {std::byte{1}}, {}},
      {"tokenizer.ggml.bos_token_id", 4, u32_bytes(0), {}},
  };
  f.tensors = {
      {"token_embd.weight", {8, 4}, 0, 0, {}, {}},       // F32: 128 bytes
      {"output_norm.weight", {8}, 0, 128, {}, {}},       // F32: 32
      {"blk.0.ffn_up.weight", {8, 6}, 1, 160, {}, {}},   // F16: 96
      {"blk.0.attn_q.weight", {64, 2}, 8, 256, {}, {}},  // Q8_0: 136, padded to 160
  };
  f.data = ramp(256 + 136);
  f.data.resize(256 + 160);
  return f;
}

std::vector<std::byte> base_file_by_writer() {
  MetadataBuilder m;
  m.set("general.architecture", "llama");
  m.set("general.name", "base");
  m.set<uint32_t>("llama.block_count", 2);
  m.set_strings("tokenizer.ggml.tokens", std::span<const std::string>(kTokens));
  m.set_array<float>("tokenizer.ggml.scores", std::vector<float>{-0.0f, -1, -2, -3});
  m.set_array<int32_t>("tokenizer.ggml.token_type", std::vector<int32_t>{3, 3, 1, 1});
  m.set("tokenizer.ggml.add_bos_token", true);
  m.set<uint32_t>("tokenizer.ggml.bos_token_id", 0);
  const std::vector<std::byte> data = ramp(256 + 136);
  const std::vector<TensorSpec> specs = {{"token_embd.weight", DType::kF32, {4, 8}},
                                         {"output_norm.weight", DType::kF32, {8}},
                                         {"blk.0.ffn_up.weight", DType::kF16, {6, 8}},
                                         {"blk.0.attn_q.weight", DType::kQ8_0, {2, 64}}};
  const std::span<const std::byte> all(data);
  const std::vector<std::span<const std::byte>> parts = {all.subspan(0, 128), all.subspan(128, 32),
                                                         all.subspan(160, 96), all.subspan(256, 136)};
  Result<std::vector<std::byte>> r = gguf::encode(m, specs, parts);
  MINFER_CHECK(r.ok());
  return std::move(r).value();
}

}  // namespace minfer::gguf::testing
