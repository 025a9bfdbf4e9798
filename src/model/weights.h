// Which tensors a family has, where they come from and what a backend made of them.
// A family's tensors section asks a WeightTable for each tensor by name, shape and role and keeps the index it gets;
// graphs refer to weights by that index.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "gguf/reader.h"
#include "tensor/buffer.h"

namespace minfer {

enum class WeightRole : uint8_t {
  kMatMul,  // [out, in] or experts [n_expert, out, in]: packed by the backend
  kVector,  // norms and biases: f32
  kEmbed,   // rows looked up by token id: kept as in the file
  kHost,    // f64 tables made by the loader (inverse frequencies)
};

struct Weight {
  std::string name;
  WeightRole role = WeightRole::kMatMul;
  TensorView plain;                        // as in the source
  const gguf::TensorInfo* info = nullptr;  // null for made-up tensors
};

// Where tensors come from: a GGUF file, or random numbers of a named geometry.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  // nullopt: not there. The view stays valid as long as the source.
  virtual Result<std::optional<TensorView>> get(const std::string& name, const Shape& shape, WeightRole role) = 0;
  virtual const gguf::TensorInfo* info(const std::string& name) const { return nullptr; }
  virtual void drop_pages(const gguf::TensorInfo& info) const {}
  virtual std::string where() const = 0;  // for messages
};

class WeightTable {
 public:
  explicit WeightTable(TensorSource& source) : source_(&source) {}

  // Index of a tensor that must be there with this shape. Errors stick (first_error).
  int32_t need(const std::string& name, Shape shape, WeightRole role);
  // The same, -1 when the source does not have it.
  int32_t maybe(const std::string& name, Shape shape, WeightRole role);
  // A second use of a tensor in another role (tied embeddings).
  int32_t again(int32_t index, WeightRole role);
  // A table made by the loader.
  int32_t table(std::string name, std::vector<double> values);

  const std::vector<Weight>& weights() const { return weights_; }
  Status first_error() const;
  void fail(Error error);  // keeps the first

 private:
  int32_t add(const std::string& name, const Shape& shape, WeightRole role, bool optional);

  TensorSource* source_;
  std::vector<Weight> weights_;
  std::vector<std::unique_ptr<std::vector<double>>> tables_;
  std::optional<Error> error_;
};

// What a backend made of a WeightTable: the views graphs run on, and their memory.
struct LoadedWeights {
  std::vector<TensorView> views;
  std::vector<Buffer> storage;
  int64_t bytes_read_per_token = 0;  // matmul weights and vectors: what a decode step streams at least
  int64_t bytes_owned = 0;
};

// Packs, converts vectors to f32 and drops source pages as they are consumed. progress(done, total) in bytes; returning
// false cancels.
Result<LoadedWeights> load_weights(const WeightTable& table, TensorSource& source, const Backend& backend,
                                   ThreadPool& pool, const std::function<bool(int64_t, int64_t)>& progress);

}  // namespace minfer
