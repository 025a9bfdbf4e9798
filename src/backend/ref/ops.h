// The reference kernels, one per primitive, each defined in the file of its op. Internal to src/backend/ref.
#pragma once

#include <string>

#include "backend/kernel.h"

namespace minfer::ref {

extern const Kernel kEmbedKernel;
extern const Kernel kGetRowsKernel;
extern const Kernel kMatMulKernel;
extern const Kernel kAddKernel;
extern const Kernel kMulKernel;
extern const Kernel kScaleKernel;
extern const Kernel kRmsNormKernel;
extern const Kernel kUnaryKernel;
extern const Kernel kSoftcapKernel;
extern const Kernel kRopeTableKernel;
extern const Kernel kRopeKernel;
extern const Kernel kKvStoreKKernel;
extern const Kernel kKvStoreVKernel;
extern const Kernel kAttnScoresKernel;
extern const Kernel kAttnSoftmaxKernel;
extern const Kernel kAttnMixKernel;
extern const Kernel kMoeRouteKernel;
extern const Kernel kMoeMatMulKernel;
extern const Kernel kMoeCombineKernel;

// The shape rule has checked everything there is to check.
inline Refusal accept_any(const NodeDesc&) { return {}; }

// " of layer 3", empty outside the layers: for messages.
std::string layer_text(const Attrs& attrs);

}  // namespace minfer::ref
