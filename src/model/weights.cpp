// Weight table and loading.
#include "model/weights.h"

#include "quant/format.h"

namespace minfer {

void WeightTable::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

Status WeightTable::first_error() const {
  if (error_) return *error_;
  return {};
}

int32_t WeightTable::add(const std::string& name, const Shape& shape, WeightRole role, bool optional) {
  if (error_) return -1;
  auto got = source_->get(name, shape, role);
  if (!got.ok()) {
    fail(std::move(got).error());
    return -1;
  }
  if (!got->has_value()) {
    if (!optional) {
      fail(make_error(ErrorCode::kNotFound, "[model] {}: tensor '{}' is missing, expected {}", source_->where(), name,
                      shape.str()));
    }
    return -1;
  }
  const TensorView view = **got;
  // [n] may also be stored as [1, n] by some converters; everything else must match.
  if (!(view.shape == shape)) {
    fail(make_error(ErrorCode::kCorrupt, "[model] {}: tensor '{}': found shape {}, expected {}", source_->where(), name,
                    view.shape.str(), shape.str()));
    return -1;
  }
  const DTypeInfo& info = dtype_info(view.dtype);
  if (!info.quantized && view.dtype != DType::kF32 && view.dtype != DType::kF16 && view.dtype != DType::kBF16) {
    fail(make_error(ErrorCode::kUnsupported, "[model] {}: tensor '{}': found type {}, expected a float or block type",
                    source_->where(), name, info.name));
    return -1;
  }
  weights_.push_back({name, role, view, source_->info(name)});
  return static_cast<int32_t>(weights_.size()) - 1;
}

int32_t WeightTable::need(const std::string& name, Shape shape, WeightRole role) {
  return add(name, shape, role, false);
}
int32_t WeightTable::maybe(const std::string& name, Shape shape, WeightRole role) {
  return add(name, shape, role, true);
}

int32_t WeightTable::again(int32_t index, WeightRole role) {
  if (error_ || index < 0) return -1;
  Weight w = weights_[static_cast<size_t>(index)];
  w.role = role;
  weights_.push_back(std::move(w));
  return static_cast<int32_t>(weights_.size()) - 1;
}

int32_t WeightTable::table(std::string name, std::vector<double> values) {
  tables_.push_back(std::make_unique<std::vector<double>>(std::move(values)));
  auto& v = *tables_.back();
  Weight w;
  w.name = std::move(name);
  w.role = WeightRole::kHost;
  w.plain.dtype = DType::kF64;
  w.plain.shape = Shape{static_cast<int64_t>(v.size())};
  w.plain.row_bytes = static_cast<int64_t>(v.size() * sizeof(double));
  w.plain.data = reinterpret_cast<std::byte*>(v.data());
  weights_.push_back(std::move(w));
  return static_cast<int32_t>(weights_.size()) - 1;
}

Result<LoadedWeights> load_weights(const WeightTable& table, TensorSource& source, const Backend& backend,
                                   ThreadPool& pool, const std::function<bool(int64_t, int64_t)>& progress) {
  LoadedWeights out;
  int64_t total = 0, done = 0;
  auto bytes_of = [](const TensorView& v) { return v.shape.rows() * dtype_row_bytes(v.dtype, v.shape.last()); };
  for (const Weight& w : table.weights()) {
    if (w.role == WeightRole::kMatMul) total += bytes_of(w.plain);
  }
  for (const Weight& w : table.weights()) {
    TensorView view = w.plain;
    const int64_t bytes = bytes_of(view);
    if (w.role == WeightRole::kMatMul) {
      auto packed = MINFER_TRY_CTX(backend.pack_weight(w.plain, pool), "[model] tensor '" + w.name + "'");
      if (packed) {
        view = packed->view;
        out.bytes_owned += static_cast<int64_t>(packed->storage.bytes());
        out.storage.push_back(std::move(packed->storage));
        if (w.info != nullptr) source.drop_pages(*w.info);
      }
      out.bytes_read_per_token += bytes;
      done += bytes;
      if (progress && !progress(done, total)) return make_error(ErrorCode::kCancelled, "[model] loading was cancelled");
    } else if (w.role == WeightRole::kVector && view.dtype != DType::kF32) {
      const int64_t n = view.shape.count();
      Buffer buffer = MINFER_TRY(Buffer::allocate(static_cast<size_t>(n) * sizeof(float)));
      quant::format(view.dtype).decode_row(view.data, reinterpret_cast<float*>(buffer.data()), n);
      view.dtype = DType::kF32;
      view.data = buffer.data();
      view.row_bytes = n * static_cast<int64_t>(sizeof(float));
      out.storage.push_back(std::move(buffer));
      out.bytes_read_per_token += n * static_cast<int64_t>(sizeof(float));
    } else if (w.role == WeightRole::kVector) {
      out.bytes_read_per_token += bytes;
    }
    out.views.push_back(view);
  }
  return out;
}

}  // namespace minfer
