// Loading goldens and feeding them.
#include "golden.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace minfer::golden {

std::vector<std::string> families() { return {"llama", "mistral", "mixtral", "qwen2", "qwen3", "gemma", "gemma3"}; }

std::string folder(const std::string& family) { return std::string(MINFER_SOURCE_DIR) + "/tests/golden/" + family; }

Golden load(const std::string& family) {
  Golden g;
  auto model = Model::open(folder(family) + "/model.gguf");
  if (!model.ok()) {
    ADD_FAILURE() << model.error().message;
    return g;
  }
  std::ifstream json_file(folder(family) + "/expected.json"),
      bin_file(folder(family) + "/logits.bin", std::ios::binary);
  const auto json = nlohmann::json::parse(json_file);
  const std::string bytes{std::istreambuf_iterator<char>(bin_file), {}};
  const size_t n_vocab = static_cast<size_t>((*model)->hparams().n_vocab);
  size_t at = 0;
  for (const auto& s : json.at("sequences")) {
    Sequence sequence{s.at("ids"), s.at("rows"), {}};
    sequence.expected.resize(sequence.rows.size() * n_vocab);
    const size_t n = sequence.expected.size() * sizeof(double);
    if (at + n > bytes.size()) break;
    std::memcpy(sequence.expected.data(), bytes.data() + at, n);
    at += n;
    g.sequences.push_back(std::move(sequence));
  }
  if (at != bytes.size() || g.sequences.size() != json.at("sequences").size()) {
    ADD_FAILURE() << family << ": logits.bin does not fit expected.json and the model";
    return g;
  }
  g.model = std::move(*model);
  return g;
}

std::unique_ptr<Model> open_edited(const gguf::File& file, const std::function<void(gguf::MetadataBuilder&)>& edit) {
  gguf::MetadataBuilder metadata;
  metadata.copy_all(file.metadata());
  edit(metadata);
  std::vector<gguf::TensorSpec> specs;
  std::vector<std::span<const std::byte>> data;
  for (const gguf::TensorInfo& t : file.tensors()) {
    specs.push_back({t.name, t.dtype, t.shape});
    data.push_back(file.bytes(t));
  }
  const auto open = [&]() -> Result<std::unique_ptr<Model>> {
    const auto bytes = MINFER_TRY(gguf::encode(metadata, specs, data));
    return Model::open(MINFER_TRY(gguf::File::from_bytes(bytes, "edited " + file.path())));
  };
  auto model = open();
  if (model.ok()) return std::move(*model);
  ADD_FAILURE() << model.error().message;
  return nullptr;
}

std::vector<Device> devices() {
  std::vector<Device> all{{"ref", ""}};
  for (const std::string& isa : available_isas()) all.push_back({"cpu", isa});
  return all;
}

std::unique_ptr<Runner> make_runner(const Model& model, const RunSetup& setup) {
  RunnerOptions options;
  options.backend.device = setup.device.device;
  options.backend.isa = setup.device.isa;
  options.n_threads = setup.n_threads;
  options.n_ctx = setup.n_ctx != 0 ? setup.n_ctx : model.hparams().n_ctx_train;
  options.n_seqs = setup.n_seqs;
  options.type_k = options.type_v = setup.kv;
  auto runner = Runner::create(model, options);
  if (!runner.ok()) {
    ADD_FAILURE() << setup.device.name() << ": " << runner.error().message;
    return nullptr;
  }
  return std::move(*runner);
}

std::vector<DType> kv_types(const Model& model) {
  std::vector<DType> types{DType::kF32, DType::kF16, DType::kBF16};
  if (model.hparams().head_dim % dtype_info(DType::kQ8_0).block_size == 0) types.push_back(DType::kQ8_0);
  return types;
}

std::vector<float> all_logits(Runner& runner, std::span<const int32_t> ids, size_t piece) {
  std::vector<float> out;
  auto seq = runner.open_sequence();
  if (!seq.ok()) {
    ADD_FAILURE() << seq.error().message;
    return out;
  }
  if (piece == 0) piece = ids.size();
  for (size_t at = 0; at < ids.size(); at += piece) {
    std::vector<BatchToken> batch;
    for (size_t i = at; i < std::min(at + piece, ids.size()); ++i)
      batch.push_back({ids[i], static_cast<int32_t>(i), *seq, true});
    auto logits = runner.step(batch);
    if (!logits.ok()) {
      ADD_FAILURE() << logits.error().message;
      break;
    }
    out.insert(out.end(), logits->begin(), logits->end());
  }
  runner.close_sequence(*seq);
  return out;
}

std::string first_difference(std::span<const float> got, std::span<const float> want, int64_t n_vocab) {
  if (got.size() != want.size()) return fmt::format("{} values, expected {}", got.size(), want.size());
  if (std::memcmp(got.data(), want.data(), got.size_bytes()) == 0) return {};
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &want[i], sizeof(float)) == 0) continue;
    return fmt::format("row {}, logit {}: {:a}, expected {:a}", i / static_cast<size_t>(n_vocab),
                       i % static_cast<size_t>(n_vocab), got[i], want[i]);
  }
  return "unreachable";
}

}  // namespace minfer::golden
