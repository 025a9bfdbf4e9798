// Scratch of the reference matmuls.
#include "backend/ref/matmul_rows.h"

#include "quant/format.h"

namespace minfer::ref {
namespace {

size_t align_up(size_t n) { return (n + 63) / 64 * 64; }

size_t acts_bytes(DType weight, int64_t k, int64_t n_rows) {
  if (!dtype_info(weight).quantized) return 0;
  return align_up(static_cast<size_t>(n_rows * (k / kQ8aBlock)) * sizeof(Q8aBlock));
}

size_t row_bytes(DType weight, int64_t k) {
  const size_t n = static_cast<size_t>(k);
  return align_up(dtype_info(weight).quantized ? n / kQ8aBlock * sizeof(CodeBlock) : n * sizeof(float));
}

}  // namespace

Refusal plain_weight_refusal(const TensorView& w) {
  if (w.layout != Layout::kPlain) return "needs plain weights, got packed ones";
  if (quant::find_format(w.dtype) == nullptr)
    return "no decoder for " + std::string(dtype_info(w.dtype).name) + " weights";
  return {};
}

size_t matmul_scratch_bytes(DType weight, int64_t k, int64_t n_rows, int n_threads) {
  return acts_bytes(weight, k, n_rows) + static_cast<size_t>(n_threads) * row_bytes(weight, k);
}

MatMulScratch::MatMulScratch(std::byte* scratch, DType weight, int64_t k, int64_t n_rows, int worker)
    : weight_(weight),
      k_(k),
      n_rows_(n_rows),
      quantized_(dtype_info(weight).quantized),
      step_(code_step(weight)),
      acts_(reinterpret_cast<Q8aBlock*>(scratch)) {
  std::byte* row = scratch + acts_bytes(weight, k, n_rows) + static_cast<size_t>(worker) * row_bytes(weight, k);
  codes_ = reinterpret_cast<CodeBlock*>(row);
  floats_ = reinterpret_cast<float*>(row);
}

void MatMulScratch::quantize(const TensorView& x, Worker& worker) {
  if (!quantized_) return;
  const auto rows = worker.share(n_rows_);
  for (int64_t r = rows.begin; r < rows.end; ++r) quantize_q8a(x.row<float>(r), k_, acts_ + r * (k_ / kQ8aBlock));
  worker.barrier();
}

void MatMulScratch::load_row(const void* row) {
  if (quantized_) {
    decode_codes(weight_, row, k_, codes_);
  } else {
    quant::format(weight_).decode_row(row, floats_, k_);
  }
}

float MatMulScratch::dot(int64_t r, const float* x) const {
  return quantized_ ? dot_codes(step_, codes_, acts_ + r * (k_ / kQ8aBlock), k_) : dot_floats(floats_, x, k_);
}

}  // namespace minfer::ref
