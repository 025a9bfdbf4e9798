// Model: an opened model: hyperparameters, weights, vocabulary and chat template, before a backend has touched it.
// Errors:  open() refuses whatever minfer could not run rightly, with the reason: format, family, sizes, vocabulary.
// Threads: read-only after open().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gguf/reader.h"
#include "model/arch.h"
#include "tokenizer/tokenizer.h"

namespace minfer {

class Model {
 public:
  static Result<std::unique_ptr<Model>> open(const std::string& path);
  static Result<std::unique_ptr<Model>> open(gguf::File file);
  // A model of a named geometry ("qwen3-0.6b") with random weights of one type, made in memory; it has no vocabulary.
  // Norms and the embedding table's type follow what files of that type hold (norms f32, table `type`).
  static Result<std::unique_ptr<Model>> random(const std::string& geometry, DType type, uint64_t seed);
  // The memory that the weights of such a model take on a backend; `packs`: it keeps a second, packed copy of matrices.
  static Result<int64_t> random_bytes(const std::string& geometry, DType type, bool packs);
  static std::vector<std::string> geometries();

  ~Model();

  const HParams& hparams() const { return hp_; }
  const Arch& arch() const { return *arch_; }
  const ModelWeights& weight_ids() const { return ids_; }
  const WeightTable& weights() const { return *table_; }
  TensorSource& source() const { return *source_; }
  const gguf::File* file() const { return file_ ? &*file_ : nullptr; }  // null for random models
  const Tokenizer* tokenizer() const { return tokenizer_ ? &*tokenizer_ : nullptr; }
  const std::string& chat_template() const { return chat_template_; }  // Jinja text, empty when the file has none
  const std::string& name() const { return name_; }                    // general.name or the file's stem
  int64_t parameters() const { return parameters_; }

  // The graph of one step.
  Result<Graph> build(const GraphParams& params, const std::vector<TensorView>& views, int64_t n_slots) const;

 private:
  Model() = default;
  Status read_vocabulary();
  Status read_tensors();

  std::optional<gguf::File> file_;
  std::unique_ptr<TensorSource> source_;
  std::unique_ptr<WeightTable> table_;
  HParams hp_;
  const Arch* arch_ = nullptr;
  ModelWeights ids_;
  std::optional<Tokenizer> tokenizer_;
  std::string chat_template_, name_;
  int64_t parameters_ = 0;
};

}  // namespace minfer
