// The list of the reference kernels.
#include "backend/ref/ref_kernels.h"

#include "backend/ref/ops.h"

namespace minfer {

namespace ref {

std::string layer_text(const Attrs& attrs) { return attrs.layer < 0 ? "" : " of layer " + std::to_string(attrs.layer); }

}  // namespace ref

std::span<const Kernel> ref_kernels(Op op) {
  switch (op) {
    case Op::kEmbed: return {&ref::kEmbedKernel, 1};
    case Op::kGetRows: return {&ref::kGetRowsKernel, 1};
    case Op::kMatMul: return {&ref::kMatMulKernel, 1};
    case Op::kAdd: return {&ref::kAddKernel, 1};
    case Op::kMul: return {&ref::kMulKernel, 1};
    case Op::kScale: return {&ref::kScaleKernel, 1};
    case Op::kRmsNorm: return {&ref::kRmsNormKernel, 1};
    case Op::kUnary: return {&ref::kUnaryKernel, 1};
    case Op::kSoftcap: return {&ref::kSoftcapKernel, 1};
    case Op::kRopeTable: return {&ref::kRopeTableKernel, 1};
    case Op::kRope: return {&ref::kRopeKernel, 1};
    case Op::kKvStoreK: return {&ref::kKvStoreKKernel, 1};
    case Op::kKvStoreV: return {&ref::kKvStoreVKernel, 1};
    case Op::kAttnScores: return {&ref::kAttnScoresKernel, 1};
    case Op::kAttnSoftmax: return {&ref::kAttnSoftmaxKernel, 1};
    case Op::kAttnMix: return {&ref::kAttnMixKernel, 1};
    case Op::kMoeRoute: return {&ref::kMoeRouteKernel, 1};
    case Op::kMoeMatMul: return {&ref::kMoeMatMulKernel, 1};
    case Op::kMoeCombine: return {&ref::kMoeCombineKernel, 1};
    case Op::kRmsNormMul:
    case Op::kMatMulGroup:
    case Op::kMatMulAdd:
    case Op::kGatedAct:
    case Op::kRopeStore:
    case Op::kAttention:
    case Op::kNormMatMulGroup: break;
  }
  return {};
}

}  // namespace minfer
