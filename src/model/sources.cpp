// Views of file tensors; random blocks.
#include "model/sources.h"

#include <cmath>

#include "quant/format.h"

namespace minfer {
namespace {

TensorView plain_view(DType dtype, const Shape& shape, const std::byte* data) {
  TensorView v;
  v.dtype = dtype;
  v.shape = shape;
  v.row_bytes = dtype_row_bytes(dtype, shape.last());
  v.data = const_cast<std::byte*>(data);  // weights are never written
  return v;
}

// Source: Vigna, splitmix64.
uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

Result<std::optional<TensorView>> GgufSource::get(const std::string& name, const Shape& shape, WeightRole role) {
  const gguf::TensorInfo* info = file_->find(name);
  if (info == nullptr) return std::optional<TensorView>();
  return std::optional<TensorView>(plain_view(info->dtype, info->shape, file_->data(*info)));
}

Result<std::optional<DType>> random_tensor_type(const std::string& name, const Shape& shape, WeightRole role,
                                                DType type, bool tied, const std::string& where) {
  const bool optional = name == "rope_freqs.weight" || name.ends_with(".bias") || (tied && name == "output.weight");
  if (optional) return std::optional<DType>();
  if (role != WeightRole::kMatMul && role != WeightRole::kEmbed) type = DType::kF32;
  if (shape.last() % dtype_info(type).block_size == 0) return std::optional<DType>(type);
  std::string fitting;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    if (quant::find_format(t) == nullptr || shape.last() % dtype_info(t).block_size != 0) continue;
    fitting += (fitting.empty() ? "" : ", ") + std::string(dtype_info(t).name);
  }
  return make_error(
      ErrorCode::kInvalidArgument,
      "[model] {}: tensor '{}' has rows of {} values, which the blocks of {} values of type {} do not divide; "
      "types that fit: {}",
      where, name, shape.last(), dtype_info(type).block_size, dtype_info(type).name, fitting);
}

Result<std::optional<TensorView>> SizeSource::get(const std::string& name, const Shape& shape, WeightRole role) {
  const auto type = MINFER_TRY(random_tensor_type(name, shape, role, type_, tied_, where()));
  if (!type) return std::optional<TensorView>();
  const auto view = plain_view(*type, shape, nullptr);
  bytes_ += shape.rows() * view.row_bytes;
  return std::optional<TensorView>(view);
}

Result<std::optional<TensorView>> RandomSource::get(const std::string& name, const Shape& shape, WeightRole role) {
  const auto chosen = MINFER_TRY(random_tensor_type(name, shape, role, type_, tied_, where()));
  if (!chosen) return std::optional<TensorView>();
  const DType type = *chosen;
  const bool matrix = role == WeightRole::kMatMul || role == WeightRole::kEmbed;
  const int64_t k = shape.last(), rows = shape.rows(), row_bytes = dtype_row_bytes(type, k);
  Buffer buffer = MINFER_TRY_CTX(Buffer::allocate(static_cast<size_t>(rows * row_bytes)),
                                 "[model] " + where() + ": tensor '" + name + "'");
  uint64_t state = seed_;
  for (char c : name) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  const float scale = matrix ? std::sqrt(3.0f / static_cast<float>(k)) : 0.1f;
  std::vector<float> row(static_cast<size_t>(k));
  // Encoding every row would take minutes for a K-quant of a large geometry: a few rows are encoded with care and
  // repeated, rotated by whole blocks so that no two neighbours are equal.
  const int64_t distinct = matrix ? std::min<int64_t>(rows, 64) : rows;
  for (int64_t r = 0; r < distinct; ++r) {
    for (float& x : row) {
      const auto u =
          static_cast<float>(static_cast<int64_t>(next_random(state) >> 40) - (1 << 23)) * 0x1p-23f;  // [-1, 1)
      x = matrix ? u * scale : 1.0f + u * scale;
    }
    MINFER_TRY(quant::format(type).encode_row(row.data(), buffer.data() + r * row_bytes, k));
  }
  const int64_t block = dtype_info(type).block_bytes, blocks = row_bytes / block;
  for (int64_t r = distinct; r < rows; ++r) {
    const std::byte* src = buffer.data() + r % distinct * row_bytes;
    const int64_t cut = static_cast<int64_t>(next_random(state) % static_cast<uint64_t>(blocks)) * block;
    std::byte* dst = buffer.data() + r * row_bytes;
    std::copy(src + cut, src + row_bytes, dst);
    std::copy(src, src + cut, dst + row_bytes - cut);
  }
  auto view = plain_view(type, shape, buffer.data());
  made_[name] = std::move(buffer);
  return std::optional<TensorView>(view);
}

}  // namespace minfer
