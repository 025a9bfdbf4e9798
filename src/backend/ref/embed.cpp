// embed: row ids[t] of the table, decoded to f32.
// Errors: an id outside the vocabulary.
#include "backend/ref/matmul_rows.h"
#include "backend/ref/ops.h"
#include "quant/format.h"

namespace minfer::ref {
namespace {

Refusal accepts(const NodeDesc& node) { return plain_weight_refusal(node.in[1]); }

void run(const KernelArgs& args, Worker& worker) {
  const int32_t* ids = args.in[0].as<int32_t>();  // [n]
  const TensorView& table = args.in[1];           // [n_vocab, d]
  const auto share = worker.share(args.in[0].shape[0]);
  for (int64_t t = share.begin; t < share.end; ++t) {
    if (ids[t] < 0 || ids[t] >= table.shape[0]) {
      worker.fail(make_error(ErrorCode::kOutOfRange, "[embed] token {}: id {} is outside the vocabulary (0..{})", t,
                             ids[t], table.shape[0] - 1));
      return;
    }
    quant::format(table.dtype).decode_row(table.row<std::byte>(ids[t]), args.out[0].row<float>(t), table.shape[1]);
  }
}

}  // namespace

const Kernel kEmbedKernel = {"embed", "ref", accepts, run, nullptr, -1};

}  // namespace minfer::ref
