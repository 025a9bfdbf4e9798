// kv_store_k, kv_store_v: the rows of x go to the slots of the region.
// Errors:  a slot outside the region; nothing of that token is written then.
// Requires: the slots of one step differ (two tokens never own the same slot).
#include "backend/ref/kv.h"
#include "backend/ref/ops.h"

namespace minfer::ref {
namespace {

template <bool kIsV>
void run(const KernelArgs& args, Worker& worker) {
  const TensorView& x = args.in[0];                 // f32 [n, n_head_kv * head_dim]
  const int32_t* slots = args.in[2].as<int32_t>();  // [n]
  KvRegion region(args.in[1], *args.attrs);
  const auto share = worker.share(x.shape[0]);
  for (int64_t t = share.begin; t < share.end; ++t) {
    if (slots[t] < 0 || slots[t] >= region.n_slots) {
      worker.fail(make_error(ErrorCode::kOutOfRange, "[{}] token {}{}: slot {} is outside the region of {} slots",
                             kIsV ? "kv_store_v" : "kv_store_k", t, layer_text(*args.attrs), slots[t], region.n_slots));
      return;
    }
    for (int64_t h = 0; h < region.n_head_kv; ++h) {
      const float* row = x.row<float>(t) + h * region.head_dim;
      kIsV ? region.store_v(slots[t], h, row) : region.store_k(slots[t], h, row);
    }
  }
}

}  // namespace

const Kernel kKvStoreKKernel = {"kv_store_k", "ref", accept_any, run<false>, nullptr, -1};
const Kernel kKvStoreVKernel = {"kv_store_v", "ref", accept_any, run<true>, nullptr, -1};

}  // namespace minfer::ref
