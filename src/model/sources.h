// Tensor sources: a GGUF file and random numbers.
#pragma once

#include <map>

#include "model/weights.h"

namespace minfer {

class GgufSource final : public TensorSource {
 public:
  explicit GgufSource(const gguf::File& file) : file_(&file) {}
  Result<std::optional<TensorView>> get(const std::string& name, const Shape& shape, WeightRole role) override;
  const gguf::TensorInfo* info(const std::string& name) const override { return file_->find(name); }
  void drop_pages(const gguf::TensorInfo& info) const override { file_->drop_pages(info); }
  std::string where() const override { return file_->path(); }

 private:
  const gguf::File* file_;
};

// What a random model holds: matrices of one type, f32 vectors, no biases; `tied`: no output.weight.
// nullopt: it lacks the tensor. Errors: rows that the type's blocks do not divide; types that do are named.
Result<std::optional<DType>> random_tensor_type(const std::string& name, const Shape& shape, WeightRole role,
                                                DType type, bool tied, const std::string& where);

// Every tensor of random_tensor_type(): matrices with normal-like values of variance 1/k, norms near 1.
class RandomSource final : public TensorSource {
 public:
  RandomSource(std::string geometry, DType type, uint64_t seed, bool tied)
      : geometry_(std::move(geometry)), type_(type), seed_(seed), tied_(tied) {}
  Result<std::optional<TensorView>> get(const std::string& name, const Shape& shape, WeightRole role) override;
  std::string where() const override { return "random " + geometry_; }

 private:
  std::string geometry_;
  DType type_;
  uint64_t seed_;
  bool tied_;
  std::map<std::string, Buffer> made_;
};

// The same tensors without their bytes: views of nothing, counted.
class SizeSource final : public TensorSource {
 public:
  SizeSource(std::string geometry, DType type, bool tied) : geometry_(std::move(geometry)), type_(type), tied_(tied) {}
  Result<std::optional<TensorView>> get(const std::string& name, const Shape& shape, WeightRole role) override;
  std::string where() const override { return "random " + geometry_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::string geometry_;
  DType type_;
  bool tied_;
  int64_t bytes_ = 0;
};

}  // namespace minfer
